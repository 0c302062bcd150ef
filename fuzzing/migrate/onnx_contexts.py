"""ONNX's node tests where other nodes surround the node, as in exported models.

Importers treat a node of its own as a special case: its inputs have types, and sizes are constants. Here the
node is in a branch of an If, after another node of that branch, or sizes such as Slice's ends are computed
from the shape of an input. Expected outputs are those of the original test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fuzzing.cases import TestCase
from fuzzing.migrate import onnx_backend_tests, onnx_node_tests
from fuzzing.migrate.legal_cases import leave_out_illegal
from fuzzing.migrate.onnx_constant_inputs import embed_constants
from fuzzing.migrate.onnx_wrong_tests import WRONG_TESTS
from fuzzing.migrate.random_operators import is_random_model
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto
    from onnx.backend.test.case.test_case import TestCase as NodeTest

NAME = "onnx-contexts"
#: The first opset in which Unsqueeze's axes are an input, and the version of the format that came with it.
_OPSET, _IR_VERSION = 13, 7
#: Tests of each operator in each context: importers have one road for each operator.
_TESTS = 2
_SHAPED, _CONDITION = "assay_shaped", "assay_condition"
#: The size that others are computed from: odd, so that it shows how a division rounds.
_SIZE = 7
#: Sizes are computed one by one. Inputs with more numbers, or with larger ones, are data.
_MOST_SIZES, _LARGEST_SIZE = 4, 1 << 20
#: By the last operator: what it does to the size, as another number is added to its result.
_ARITHMETIC = {
    "Add": lambda size: size + 2,
    "Sub": lambda size: size - 2,
    "Mul": lambda size: size * 2,
    "Div": lambda size: size // 2,
}


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """Up to two tests of each operator in each context, in ONNX's order; named TEST/CONTEXT."""
    subjects: dict[str, str] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for operator, test in plain_tests():
        for context, surround in _CONTEXTS.items():
            if seen[operator, context] >= _TESTS:
                continue
            found = surround(test)
            if found is None or not is_valid(found.model):
                continue
            seen[operator, context] += 1
            named = replace(found, name=f"{test.name}/{context}")
            subjects[named.name] = operator
            cases = onnx_backend_tests.migrate_tests(NAME, [named], lambda one: subjects[one.name])
            yield from leave_out_illegal(cases)


def plain_tests() -> Iterator[tuple[str, NodeTest]]:
    """Operator and test of each node test that is plain and right, in ONNX's order."""
    tests = onnx_node_tests.collect()
    operator = onnx_node_tests.operator_of(tests)
    for test in tests:
        if test.name not in WRONG_TESTS and (plain := _plain_test(test)) is not None:
            yield operator(test), plain


def _plain_test(test: NodeTest) -> NodeTest | None:
    """The test with an opset in which Unsqueeze's axes are an input; None if it is not plain, or its operator
    was another one before.
    """
    import onnx

    if not is_plain(test):
        return None
    assert test.model is not None
    (imported,) = (one for one in test.model.opset_import if one.domain in ("", "ai.onnx"))
    if imported.version >= _OPSET:
        return test
    kind = test.model.graph.node[0].op_type
    before, after = (onnx.defs.get_schema(kind, version) for version in (imported.version, _OPSET))
    if before.since_version != after.since_version:
        return None
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    model.ir_version = max(model.ir_version, _IR_VERSION)
    model.opset_import[0].version = _OPSET
    return replace(test, model=model)


def in_branch(test: NodeTest) -> NodeTest | None:
    """The test's node in both branches of an If, after two nodes that leave its first input as it is; None
    where the first input is no signed number. Further inputs are initializers.
    """
    import onnx

    test = embed_constants(test) or test
    assert test.model is not None
    assert test.data_sets is not None
    [(inputs, outputs)] = test.data_sets
    graph = test.model.graph
    (node,) = graph.node
    first = next((one for one in graph.input if one.name == node.input[0]), None) if node.input else None
    if first is None or first.type.tensor_type.elem_type not in _signed():
        return None
    branches = {}
    for name in ("then", "else"):
        inner = onnx.NodeProto()
        inner.CopyFrom(node)
        inner.input[0] = f"assay_{name}_twice"
        inner.output[:] = [f"assay_{name}_{one}" if one else "" for one in node.output]
        declared = [_renamed(one, f"assay_{name}_{one.name}") for one in graph.output]
        negated = [
            onnx.helper.make_node("Neg", [first.name], [f"assay_{name}_once"]),
            onnx.helper.make_node("Neg", [f"assay_{name}_once"], [f"assay_{name}_twice"]),
        ]
        branches[f"{name}_branch"] = onnx.helper.make_graph([*negated, inner], f"{name}_graph", [], declared)
    choice = onnx.helper.make_node("If", [_CONDITION], [one.name for one in graph.output], **branches)
    condition = onnx.helper.make_tensor_value_info(_CONDITION, onnx.TensorProto.BOOL, [])
    model = _with_graph(test.model, [choice])
    model.graph.input.append(condition)
    return replace(test, model=model, data_sets=[([*inputs, np.array(True)], outputs)])


def compute_sizes(test: NodeTest, last: str) -> NodeTest | None:
    """The test with its small integer inputs computed from the size of a further input by the operator `last`
    and an addition; None if it has none.
    """
    import onnx

    assert test.model is not None
    assert test.data_sets is not None
    [(inputs, outputs)] = test.data_sets
    graph = test.model.graph
    (node,) = graph.node
    values = dict(zip((one.name for one in graph.input), inputs, strict=True))
    computed = {name: value for name, value in values.items() if _is_sizes(value)}
    if not computed:
        return None
    nodes: list[NodeProto] = []
    constants: list[TensorProto] = []
    for name, value in computed.items():
        more_nodes, more_constants = _sizes_of_shape(name, np.asarray(value), last)
        nodes += more_nodes
        constants += more_constants
    model = _with_graph(test.model, [*nodes, node])
    kept = [one for one in graph.input if one.name not in computed]
    del model.graph.input[:]
    shaped = onnx.helper.make_tensor_value_info(_SHAPED, onnx.TensorProto.FLOAT, [_SIZE])
    model.graph.input.extend([*kept, shaped])
    model.graph.initializer.extend(constants)
    given = [values[one.name] for one in kept]
    found = replace(test, model=model, data_sets=[([*given, np.arange(_SIZE, dtype=np.float32)], outputs)])
    return embed_constants(found, keep={_SHAPED}) or found


#: A context → the test in it, None where it does not fit.
_CONTEXTS: dict[str, Callable[[NodeTest], NodeTest | None]] = {
    "branch": in_branch,
    **{f"{name} of a shape": partial(compute_sizes, last=name) for name in _ARITHMETIC},
}


def _sizes_of_shape(name: str, value: np.ndarray, last: str) -> tuple[list[NodeProto], list[TensorProto]]:
    """Nodes that compute `value` as the tensor `name`, and their constants."""
    import onnx
    from onnx.helper import make_node

    def constant(word: str, number: object) -> TensorProto:
        return onnx.numpy_helper.from_array(np.asarray(number, np.int64), f"{name}_{word}")

    nodes = [
        make_node("Shape", [_SHAPED], [f"{name}_shape"]),
        make_node("Gather", [f"{name}_shape", f"{name}_zero"], [f"{name}_size"]),
        make_node(last, [f"{name}_size", f"{name}_two"], [f"{name}_{last}"]),
    ]
    constants = [constant("zero", 0), constant("two", 2)]
    parts = []
    for place, wanted in enumerate(value.reshape(-1)):
        constants.append(constant(f"offset{place}", int(wanted) - _ARITHMETIC[last](_SIZE)))
        part = f"{name}_part{place}" if value.ndim else name
        nodes.append(make_node("Add", [f"{name}_{last}", f"{name}_offset{place}"], [part]))
        parts.append(part)
    if value.ndim:
        constants.append(constant("axis", [0]))
        nodes += [make_node("Unsqueeze", [part, f"{name}_axis"], [f"{part}_row"]) for part in parts]
        nodes.append(make_node("Concat", [f"{part}_row" for part in parts], [name], axis=0))
    return nodes, constants


def _is_sizes(value: object) -> bool:
    """Whether a value is what models compute from shapes: a few small numbers of int64."""
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype != np.int64:
        return False
    few = value.ndim <= 1 and 0 < value.size <= _MOST_SIZES
    return few and bool(np.all(np.abs(value) <= _LARGEST_SIZE))


def is_plain(test: NodeTest) -> bool:
    """Whether a test is a node of ONNX's own without subgraphs, not random, with one value for each input."""
    model, sets = test.model, test.data_sets or []
    if model is None or len(model.graph.node) != 1 or model.graph.node[0].domain not in ("", "ai.onnx"):
        return False
    if len(sets) != 1 or len(sets[0][0]) != len(model.graph.input) or is_random_model(model, {}):
        return False
    tensors = all(one.type.HasField("tensor_type") for one in model.graph.output)
    return tensors and not any(one.HasField("g") for one in model.graph.node[0].attribute)


def is_valid(model: ModelProto | None) -> bool:
    """Whether ONNX accepts the model; for some operators it infers no type within a branch."""
    import onnx

    if model is None:
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def _signed() -> frozenset[int]:
    from onnx import TensorProto

    return frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64})


def _renamed(declared: ValueInfoProto, name: str) -> ValueInfoProto:
    import onnx

    found = onnx.ValueInfoProto()
    found.CopyFrom(declared)
    found.name = name
    return found


def _with_graph(model: ModelProto, nodes: list[NodeProto]) -> ModelProto:
    """The model with other nodes."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    del found.graph.node[:]
    found.graph.node.extend(nodes)
    return found
