"""ONNX's node tests with the values of attributes that no node test has.

For each value class of an operator's attribute (`fuzzing.coverage.attribute_classes`) that its node tests
lack, the tests get such a value, until two legal ones give other outputs than the test or than without the
attribute. Expected outputs are the reference's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fuzzing.cases import OnnxModel, Tensor, TestCase
from fuzzing.coverage.attribute_classes import ABSENT, GIVEN, SWITCHES, Cell, classify, list_cells
from fuzzing.migrate import onnx_node_tests
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

NAME = "onnx-attributes"
#: Cases of each class, and tests that are tried for them.
_CASES, _TESTS = 2, 12
#: By the class of an element type: numbers of onnx.TensorProto.DataType.
_TYPES = {"float32": (1,), "other float": (10, 11), "integer": (6, 7, 3, 5)}
_FLOATS = (0.3, 2.0)
#: Shares of a whole: `running = running * momentum + mean * (1 - momentum)`, and what Dropout leaves out.
_SHARES = {"momentum": (0.3, 0.7), "ratio": (0.3, 0.7)}


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """The cases by operator and attribute."""
    tests: dict[str, list[TestCase]] = defaultdict(list)
    for item in onnx_node_tests.migrate():
        if isinstance(item, TestCase) and (node := _single_node(item)) is not None:
            tests[node.op_type].append(item)
    for cell in list_cells():
        own = tests.get(cell.operator, [])
        if own and not any(_class_of(test, cell) == cell.value_class for test in own):
            yield from make_cases(cell, own)


def make_cases(cell: Cell, tests: Sequence[TestCase]) -> Iterator[TestCase | Skip]:
    """The cases of one class, made of tests of its operator; a Skip if there is none."""
    found = 0
    for test in tests[:_TESTS]:
        for number, value in enumerate(_propose(cell, test)):
            case = _with_value(test, cell, value, number)
            if case is not None and found < _CASES:
                found += 1
                yield case
    if not found:
        yield Skip(
            f"{cell.operator}.{cell.attribute}={cell.value_class}", "no node test takes a value of the class"
        )


def _single_node(case: TestCase) -> NodeProto | None:
    """The node of a model of one node of ONNX's own; None for others and for random results."""
    import onnx

    nodes = onnx.load_model_from_string(case.program.to_bytes()).graph.node
    usable = len(nodes) == 1 and not nodes[0].domain and case.comparison == "values"
    return nodes[0] if usable else None


def _attributes(node: NodeProto) -> Mapping[str, Any]:
    import onnx

    return {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}


def _class_of(test: TestCase, cell: Cell) -> str:
    node = _single_node(test)
    assert node is not None
    return classify(cell.operator, cell.attribute, _attributes(node).get(cell.attribute))


def _propose(cell: Cell, test: TestCase) -> Iterator[Any]:
    """Values of a class that may suit a test; None for no attribute."""
    node = _single_node(test)
    assert node is not None
    name, wanted = cell.attribute, cell.value_class
    present = _attributes(node).get(name)
    first = test.inputs[0][1] if test.inputs else None
    rank = len(first.shape) if isinstance(first, Tensor) else 0
    if wanted == ABSENT:
        yield None
    elif name in SWITCHES:
        yield int(wanted)
    elif wanted in _TYPES:
        yield from _TYPES[wanted]
    elif wanted in ("from the front", "from the end"):
        yield from _count_axes(present, rank, wanted == "from the end")
    elif wanted == GIVEN:
        floats = _SHARES.get(name, _FLOATS)
        yield from floats if isinstance(present, float) or _is_float(cell) else ()
    else:
        yield from _propose_lengths(wanted, name, max(rank - 2, 1))


def _count_axes(present: Any, rank: int, from_end: bool) -> Iterator[Any]:
    """The present axes counted from the other end, and the first and last axis."""
    given = present if isinstance(present, list) else [present] if isinstance(present, int) else []
    turned = [axis - rank if from_end else axis % max(rank, 1) for axis in given]
    if turned:
        yield turned if isinstance(present, list) else turned[0]
    elif rank:
        yield from (-1, -rank) if from_end else (0, rank - 1)


def _is_float(cell: Cell) -> bool:
    import onnx

    attribute = onnx.defs.get_schema(cell.operator).attributes[cell.attribute]
    return bool(attribute.type == onnx.defs.OpSchema.AttrType.FLOAT)


def _propose_lengths(wanted: str, name: str, axes: int) -> Iterator[Any]:
    if wanted in ("1", "more than 1"):
        yield 1 if wanted == "1" else 2
    elif name == "pads":
        sides = {"zero": (0, 0), "equal on both sides": (1, 1), "different on both sides": (0, 1)}
        before, after = sides[wanted]
        yield [before] * axes + [after] * axes
    elif wanted in ("all 1", "equal", "different"):
        yield [1] * axes if wanted == "all 1" else [2] * axes if wanted == "equal" else [*range(1, axes + 1)]
    else:
        yield wanted


def _with_value(test: TestCase, cell: Cell, value: Any, number: int) -> TestCase | None:
    """The test with the value; None if it is illegal, or changes no output."""
    from fuzzing.graph.case_validity import find_case_violations

    node = _single_node(test)
    assert node is not None
    model = _typed(_changed(test, cell.attribute, value))
    if model is None or classify(cell.operator, cell.attribute, value) != cell.value_class:
        return None
    name = f"{test.provenance.test}/{cell.attribute}={cell.value_class}/{number}"
    origin = replace(test.provenance, source=NAME, test=name)
    kept = {item.name for item in model.graph.input}
    inputs = tuple((name, given) for name, given in test.inputs if name in kept)
    case = replace(
        test, program=_program(model), inputs=inputs, expected=None, tolerance=None, provenance=origin
    )
    if find_case_violations(case):
        return None
    outputs = _outputs(case)
    if outputs is None:
        return None
    if outputs != _outputs(replace(test, expected=None)):
        return case
    plain = None if value is None else _typed(_changed(test, cell.attribute, None))
    differs = plain is not None and outputs != _outputs(replace(test, program=_program(plain)))
    return case if differs else None


def _program(model: ModelProto) -> OnnxModel:
    return OnnxModel(model.SerializeToString())


def _changed(test: TestCase, name: str, value: Any) -> bytes:
    """The test's model with another value of an attribute, or without it."""
    import onnx

    model = onnx.load_model_from_string(test.program.to_bytes())
    [node] = model.graph.node
    left = [item for item in node.attribute if item.name != name]
    del node.attribute[:]
    node.attribute.extend([*left, *([] if value is None else [onnx.helper.make_attribute(name, value)])])
    if (node.op_type, name) == ("QuantizeLinear", "output_dtype") and value is not None:
        # The zero point has the type too, and needs the attribute to agree.
        for zero in [item for item in model.graph.input if item.name in node.input[2:]]:
            model.graph.input.remove(zero)
        del node.input[2:]
        model.graph.output[0].type.tensor_type.elem_type = value
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    data: bytes = model.SerializeToString()
    return data


def _typed(data: bytes) -> ModelProto | None:
    """The model with the output shapes that ONNX infers; None if ONNX refuses it or leaves a rank open."""
    import onnx

    try:
        model = onnx.shape_inference.infer_shapes(
            onnx.load_model_from_string(data), check_type=True, strict_mode=True, data_prop=True
        )
        onnx.checker.check_model(model, full_check=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return None
    return model


def _outputs(case: TestCase) -> Any:
    """The reference's outputs; None if it fails."""
    from fuzzing.backends.onnx_reference import OnnxReference

    reference = OnnxReference()
    reference.load("CPU", {})
    named = list(case.values())
    try:
        found = reference.run(reference.compile(reference.convert(case.program, named)), named)
    except Exception:  # noqa: BLE001 - the model is illegal or unsupported
        return None
    return [value for _, value in found]
