"""ONNX's node tests in forms that the standard allows and no node test has.

Optional inputs and outputs are left out one by one, and inputs are given that no test gives. Of an operator
whose inputs may have different floating-point types one is float16, unless it is a function, whose body may
not take that. Sizes, such as Expand's shape, are those that leave the first input's elements as they are, for
which importers have a way of their own; they are constants, or computed from a shape. Weights are quantized
by channel: node tests have one scale for a tensor. Expected outputs are the reference's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzzing.cases import TestCase
from fuzzing.migrate import onnx_backend_tests
from fuzzing.migrate.onnx_constant_inputs import embed_constants
from fuzzing.migrate.onnx_contexts import compute_sizes, is_valid, plain_tests
from fuzzing.migrate.onnx_operands import add_optional_inputs, quantize_by_channel
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx import NodeProto
    from onnx.backend.test.case.test_case import TestCase as NodeTest

NAME = "onnx-forms"
#: Tests of each operator in each form.
_TESTS = 2
#: Their types are their result: a cast of a cast, and scales of integers.
_ABOUT_TYPES = frozenset({"Cast", "CastLike", "QuantizeLinear", "DequantizeLinear"})
_TOLERANCE = 1e-3, 1e-7  # relative and absolute, as of ONNX's tests; the oracle widens those of float16
_STEADY = 2e-2  # some twenty roundings to float16, of 2⁻¹¹ each


Values = dict[str, Any]


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """Up to two tests of each operator in each form, in ONNX's order; named TEST/FORM."""
    from fuzzing.graph.case_validity import find_case_violations

    subjects: dict[str, str] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for operator, test in plain_tests():
        for form, found in list_forms(test):
            if seen[operator, form] >= _TESTS:
                continue
            named = replace(embed_constants(found) or found, name=f"{test.name}/{form}")
            subjects[named.name] = operator
            for item in onnx_backend_tests.migrate_tests(NAME, [named], lambda one: subjects[one.name]):
                if isinstance(item, Skip) or find_case_violations(item):
                    continue  # what is legal depends on the values of constants, too
                seen[operator, form] += 1
                yield item


def list_forms(test: NodeTest) -> Iterator[tuple[str, NodeTest]]:
    """The name and the test of each form that ONNX and its reference take."""
    assert test.model is not None
    assert test.data_sets is not None
    [(inputs, _)] = test.data_sets
    if not all(isinstance(value, (np.ndarray, np.generic)) for value in inputs):
        return
    values = {one.name: np.asarray(value) for one, value in zip(test.model.graph.input, inputs, strict=True)}
    for form, node, changed, half in _changes(test.model.graph.node[0], values):
        found = _remake(test, node, changed, half)
        if found is None:
            continue
        if node is not test.model.graph.node[0] or half:
            yield form, found
        elif _is_neutral(found):
            yield form, found
            if (computed := compute_sizes(found, "Add")) is not None:
                yield f"{form}, computed", computed


def _changes(node: NodeProto, values: Values) -> Iterator[tuple[str, NodeProto, Values, frozenset[str]]]:
    """Form, node, inputs, and the names of the node's inputs and outputs that are float16."""
    import onnx

    schema = onnx.defs.get_schema(node.op_type, node.domain)
    nothing: frozenset[str] = frozenset()
    for place, (name, formal) in enumerate(zip(node.input, schema.inputs, strict=False)):
        if name and formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional:
            left = {key: value for key, value in values.items() if key != name}
            yield f"without {formal.name}", _without(node, "input", place), left, nothing
    for place, (name, formal) in enumerate(zip(node.output, schema.outputs, strict=False)):
        if name and formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional:
            yield f"without output {formal.name}", _without(node, "output", place), values, nothing
    is_function = any(getattr(schema, f"has_{kind}function") for kind in ("", "context_dependent_"))
    if node.op_type not in _ABOUT_TYPES and not is_function:
        for variable, names in _variables(node, values).items():
            yield f"{variable} is float16", node, values, names
    if (by_channel := quantize_by_channel(node, values)) is not None:
        yield "weights by channel", *by_channel, nothing
    for name, changed, more in add_optional_inputs(node, values):
        yield f"with {name}", changed, more, nothing
    first = values.get(node.input[0]) if node.input else None
    for name, formal in list(zip(node.input, schema.inputs, strict=False))[1:]:
        if first is not None and name in values and _is_list_of_sizes(values[name]):
            for form, sizes in _neutral_sizes(first).items():
                value = np.array(sizes, np.int64)
                yield f"{formal.name} {form}", node, values | {name: value}, nothing


def _without(node: NodeProto, operands: str, place: int) -> NodeProto:
    """The node without one of its operands, "input" or "output"."""
    import onnx

    found = onnx.NodeProto()
    found.CopyFrom(node)
    names = getattr(found, operands)
    names[place] = ""
    while names and not names[-1]:
        del names[-1]
    return found


def _variables(node: NodeProto, values: Values) -> dict[str, frozenset[str]]:
    """Type variable → inputs and outputs of it, of an operator with several for its float32 inputs."""
    import onnx

    schema = onnx.defs.get_schema(node.op_type, node.domain)
    found: dict[str, set[str]] = {}
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for name, formal in zip(names, formals, strict=False):
            if name and (name not in values or values[name].dtype == np.float32):
                found.setdefault(formal.type_str, set()).add(name)
    named = {constraint.type_param_str for constraint in schema.type_constraints}
    floats = {key: frozenset(names) for key, names in found.items() if key in named and names & values.keys()}
    return floats if len(floats) > 1 else {}


def _is_list_of_sizes(value: np.ndarray) -> bool:
    return value.dtype == np.int64 and value.ndim == 1


def _neutral_sizes(first: np.ndarray) -> dict[str, list[int]]:
    """Sizes that leave a tensor as it is, in one operator or another."""
    rank = first.ndim
    return {
        "of the input": list(first.shape),
        "of the input after 1": [1, *first.shape],
        "all 1": [1] * rank,
        "all 0": [0] * 2 * rank,
    }


def _is_neutral(test: NodeTest) -> bool:
    """Whether the only output has the elements of the first input, in their order."""
    assert test.data_sets is not None
    [(inputs, outputs)] = test.data_sets
    return len(outputs) == 1 and np.array_equal(np.ravel(inputs[0]), np.ravel(outputs[0]))


def _remake(
    test: NodeTest, node: NodeProto, values: Mapping[str, Any], half: frozenset[str]
) -> NodeTest | None:
    """The test of another node or with other inputs, and the reference's outputs; None if ONNX or its
    reference refuses it, or the outputs are no numbers.

    What is float16 is so in the model alone: the reference computes in float32 what the float16 inputs hold.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    assert test.model is not None
    rounded = {
        name: value.astype(np.float16).astype(value.dtype) if name in half else value
        for name, value in values.items()
    }
    plain = _model(test, node, rounded, frozenset())
    model = _model(test, node, rounded, half)
    if not is_valid(plain) or not is_valid(model):
        return None
    try:
        outputs = list(ReferenceEvaluator(plain).run(None, rounded))
    except Exception:  # noqa: BLE001 - the form is illegal, or the reference lacks it
        return None
    declared = {one.name: one.type.tensor_type.elem_type for one in model.graph.output}
    given = []
    for name, output in zip(declared, outputs, strict=True):
        wanted = onnx.helper.tensor_dtype_to_np_dtype(declared[name])
        if not isinstance(output, np.ndarray) or (name not in half and output.dtype != wanted):
            return None
        given.append(output.astype(wanted))
    inputs = [value.astype(np.float16) if name in half else value for name, value in rounded.items()]
    if half and not _is_steady(model, dict(zip(rounded, inputs, strict=True)), outputs):
        return None
    relative, absolute = _TOLERANCE
    return replace(test, model=model, data_sets=[(inputs, given)], rtol=relative, atol=absolute)


def _is_steady(model: Any, values: Mapping[str, Any], outputs: list[Any]) -> bool:
    """Whether the outputs are nearly the same where the reference computes in float16 too; far from it are
    those that depend on the last bits, such as samples at computed places.
    """
    from onnx.reference import ReferenceEvaluator

    try:
        others = ReferenceEvaluator(model).run(None, dict(values))
    except Exception:  # noqa: BLE001 - the reference mixes no types here
        return False
    return all(
        np.allclose(np.asarray(other, np.float64), one, rtol=_STEADY, atol=_STEADY)
        for one, other in zip(outputs, others, strict=True)
    )


def _model(test: NodeTest, node: NodeProto, values: Mapping[str, Any], half: frozenset[str]) -> Any:
    """The model of a node with these inputs, and the output shapes that ONNX infers."""
    import onnx
    from onnx import helper

    assert test.model is not None

    def declared(name: str, element: int, shape: Any) -> Any:
        return helper.make_tensor_value_info(
            name, onnx.TensorProto.FLOAT16 if name in half else element, shape
        )

    inputs = [
        declared(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in values.items()
    ]
    outputs = [
        declared(one.name, one.type.tensor_type.elem_type, None)
        for one in test.model.graph.output
        if one.name in node.output
    ]
    if not outputs:
        return None
    graph = helper.make_graph([node], "form", inputs, outputs)
    model = helper.make_model(graph, opset_imports=test.model.opset_import, ir_version=test.model.ir_version)
    try:
        return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError:
        return None
