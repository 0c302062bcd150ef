"""ONNX's node tests in the forms that their operators had in earlier opsets.

The installed ONNX tests the newest form of each operator only, while most models are of older opsets.
Expected outputs are those of the original test: ONNX's version converter keeps the meaning or refuses, but
for a few operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from fuzzing.cases import TestCase
from fuzzing.migrate import onnx_backend_tests, onnx_node_tests
from fuzzing.migrate.legal_cases import leave_out_illegal
from fuzzing.migrate.onnx_constant_inputs import embed_constants
from fuzzing.migrate.onnx_wrong_tests import WRONG_TESTS
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnx.backend.test.case.test_case import TestCase as NodeTest
    from onnx.defs import OpSchema

NAME = "onnx-earlier-opsets"
#: Of the oldest form: PyTorch exports opset 7 and newer.
_OLDEST = 7
#: ONNX 1.23.2 converts these without a change of meaning that came with the form, so that onnxruntime 1.32.0
#: gives other outputs: before opset 13, Softmax normalized all axes from its own on. The forms of casts
#: differ in types alone.
_LEFT_OUT = frozenset({"Cast", "CastLike", "DFT", "LogSoftmax", "Softmax"})


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """Every earlier form of each node test of the installed ONNX, in its order, the newest form first.

    Inputs but the first are initializers, as earlier forms have them as attributes. Tests are named
    TEST@OPSET.
    """
    tests = onnx_node_tests.collect()
    operator = onnx_node_tests.operator_of(tests)
    subjects: dict[str, str] = {}

    def subject(form: NodeTest) -> str:
        return subjects[form.name]

    for test in tests:
        if test.name in WRONG_TESTS:
            yield Skip(test.name, "the test's own outputs are wrong")
            continue
        constant = embed_constants(test) or test
        forms = [
            replace(constant, name=f"{test.name}@{opset}", model=model)
            for opset, model in _earlier_forms(constant.model)
        ]
        subjects |= {form.name: operator(test) for form in forms}
        if not forms:
            yield Skip(test.name, "the operator has no earlier form that ONNX converts to")
        # ONNX's version converter gives a Scan of opset 8 no batch.
        yield from leave_out_illegal(onnx_backend_tests.migrate_tests(NAME, forms, subject))


def _earlier_forms(model: ModelProto | None) -> Iterator[tuple[int, ModelProto]]:
    """The opset and the model of each earlier form, down to the first that ONNX cannot convert to."""
    import onnx
    from onnx import version_converter

    if model is None or len(model.graph.node) != 1 or model.graph.node[0].domain not in ("", "ai.onnx"):
        return
    (node,) = model.graph.node
    if node.op_type in _LEFT_OUT:
        return
    newest = next(one.version for one in model.opset_import if one.domain == node.domain)
    for opset in _opsets(node.op_type, newest):
        try:
            earlier = version_converter.convert_version(model, opset)
            onnx.checker.check_model(earlier, full_check=True)
        except (RuntimeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            return
        yield opset, earlier


@cache
def _opsets(operator: str, newest: int) -> tuple[int, ...]:
    """The last opset of each earlier form; forms differ in attributes, their defaults or inputs."""
    import onnx

    found: list[int] = []
    schema = onnx.defs.get_schema(operator, newest)
    while (opset := schema.since_version - 1) >= _OLDEST:
        try:
            earlier = onnx.defs.get_schema(operator, opset)
        except onnx.defs.SchemaError:  # there was none
            break
        if _form(earlier) != _form(schema):
            found.append(opset)
        schema = earlier
    return tuple(found)


def _form(schema: OpSchema) -> object:
    defaults = {name: str(one.default_value) for name, one in schema.attributes.items()}
    return defaults, [one.name for one in schema.inputs], len(schema.outputs)
