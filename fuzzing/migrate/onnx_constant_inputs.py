"""ONNX's node tests with all inputs but the first as initializers.

Many compilers require axes, k, depth, scales or roi to be constant, and refuse the node tests, in which
everything is an input. Expected outputs are those of the original test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzzing.cases import TestCase
from fuzzing.migrate import onnx_backend_tests, onnx_node_tests
from fuzzing.migrate.legal_cases import leave_out_illegal
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx import TensorProto, ValueInfoProto
    from onnx.backend.test.case.test_case import TestCase as NodeTest

NAME = "onnx-constant-inputs"
#: Since IR version 4 an initializer need not be an input too.
_IR_VERSION = 4


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """Every node test of the installed ONNX that has such an input, in its order."""
    tests = onnx_node_tests.collect()
    operator = onnx_node_tests.operator_of(tests)
    for test in tests:
        found = embed_constants(test)
        if found is None:
            yield Skip(test.name, "the test has no tensor beside its first input")
        else:
            yield from leave_out_illegal(onnx_backend_tests.migrate_tests(NAME, [found], operator))


def embed_constants(test: NodeTest, keep: Collection[str] = ()) -> NodeTest | None:
    """The test with its further tensors, but those named in `keep`, as initializers; None if it has none, or
    no single data set.
    """
    import onnx

    if test.model is None or not test.data_sets or len(test.data_sets) != 1:
        return None
    [(inputs, outputs)] = test.data_sets
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    pairs = list(zip(model.graph.input, inputs, strict=False))  # trailing inputs may be missing
    constants = {
        declared.name: tensor
        for declared, value in pairs[1:]
        if declared.name not in keep and (tensor := _to_constant(declared, value)) is not None
    }
    if not constants:
        return None
    kept = [value for declared, value in pairs if declared.name not in constants]
    remaining = [declared for declared in model.graph.input if declared.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(remaining)
    model.graph.initializer.extend(constants.values())
    model.ir_version = max(model.ir_version, _IR_VERSION)
    return replace(test, model=model, data_sets=[(kept, outputs)])


def _to_constant(declared: ValueInfoProto, value: Any) -> TensorProto | None:
    """The value as an initializer; None for sequences, absent values and another type than declared."""
    import onnx

    if isinstance(value, (np.ndarray, np.generic)):
        value = onnx.numpy_helper.from_array(np.asarray(value))
    if not isinstance(value, onnx.TensorProto) or value.data_type != declared.type.tensor_type.elem_type:
        return None
    found = onnx.TensorProto()
    found.CopyFrom(value)
    found.name = declared.name
    return found
