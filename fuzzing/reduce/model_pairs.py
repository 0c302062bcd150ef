"""Reduces pairs of ONNX models: fewer rewrites, then a smaller model that the rewrites are applied to.

The other side is always made from the smaller model anew, by the same rewrites or by saturation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx
from onnx import ModelProto

from fuzzing.cases import EquivalentModels, Input, OnnxModel, Recipe, TestCase
from fuzzing.equivalence.graphs.models import pair_of, parts_of
from fuzzing.equivalence.graphs.tangle import Step
from fuzzing.errors import InternalError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.outcomes import Outcome
from fuzzing.reduce.case_inputs import simplify_inputs
from fuzzing.reduce.engine import Attempt, Pass, ReductionSpec, ddmin
from fuzzing.reduce.formats import ProgramFormat, register_format

#: Types of values that may become inputs.
_FLOATS = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64"}


@dataclass(frozen=True)
class ModelPair:
    """The left model's case, and the steps to the right one."""

    left: TestCase
    steps: tuple[Step, ...]

    @property
    def model(self) -> ModelProto:
        """The left model."""
        assert isinstance(self.left.program, OnnxModel)
        return onnx.load_model_from_string(self.left.program.model)

    def pair(self) -> TestCase | None:
        """The case of both; None if a step does not apply any more."""
        made = pair_of(self.left, list(self.steps))
        return made if made is not None and len(parts_of(made)[1]) == len(self.steps) else None


def _load(case: TestCase, _evaluator: Evaluator, _outcome: Outcome) -> ModelPair:
    left, steps = parts_of(case)
    return ModelPair(left, tuple(steps))


def _case(state: ModelPair) -> TestCase:
    if (made := state.pair()) is None:
        raise InternalError("a candidate's steps do not apply, though it was valid")
    return made


def _size(state: ModelPair) -> tuple[float, ...]:
    model = state.model
    elements = sum(len(str(given)) for _, given in state.left.inputs)
    nodes = model.graph.node
    named = sum(node.op_type != "Identity" for node in nodes)
    return len(state.steps), len(nodes), named, len(model.graph.output), len(state.left.inputs), elements


def _without_steps(state: ModelPair, gone: Sequence[int]) -> ModelPair:
    return replace(state, steps=tuple(step for at, step in enumerate(state.steps) if at not in gone))


def _drop_steps(attempt: Attempt[ModelPair]) -> None:
    ddmin(attempt, lambda state: list(range(len(state.steps))), _without_steps)


def _narrow(attempt: Attempt[ModelPair]) -> None:
    """One value as the only output, the first ones first; nodes that it does not need are dropped."""
    while attempt.any(_cuts(attempt.best)):
        pass


def _cuts(state: ModelPair) -> Iterator[ModelPair]:
    model = state.model
    for node in model.graph.node:
        for name in filter(None, node.output):
            if (cut := _cut(model, name)) is not None:
                yield _with_model(state, cut, dict(state.left.inputs))


def _cut(model: ModelProto, output: str) -> ModelProto | None:
    """The part of a model that computes one value; None if its type is unknown."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    known = {value.name: value for value in (*inferred.value_info, *inferred.output)}
    if output not in known:
        return None
    needed, nodes = {output}, []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            nodes.append(node)
            needed |= {*node.input, *_captured(node)}
    cut = ModelProto()
    cut.CopyFrom(model)
    for field in ("node", "input", "output", "initializer", "value_info"):
        cut.graph.ClearField(field)
    cut.graph.node.extend(reversed(nodes))
    cut.graph.input.extend(given for given in model.graph.input if given.name in needed)
    cut.graph.initializer.extend(item for item in model.graph.initializer if item.name in needed)
    cut.graph.output.append(known[output])
    return cut


def _captured(node: onnx.NodeProto) -> Iterator[str]:
    """Names that the bodies of a node use."""
    for item in node.attribute:
        for inner in item.g.node:
            yield from (*inner.input, *_captured(inner))


def _lift(attempt: Attempt[ModelPair]) -> None:
    """Values become inputs, so that what computes them is gone; the last ones first."""
    while attempt.any(_lifts(attempt.best)):
        pass


def _lifts(state: ModelPair) -> Iterator[ModelPair]:
    model = state.model
    inferred = onnx.shape_inference.infer_shapes(model).graph
    for value in reversed(inferred.value_info):
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        dtype = _FLOATS.get(value.type.tensor_type.elem_type)
        if dtype is None or 0 in shape:
            continue
        lifted = ModelProto()
        lifted.CopyFrom(model)
        nodes = [node for node in model.graph.node if value.name not in node.output]
        lifted.graph.ClearField("node")
        lifted.graph.node.extend(nodes)
        lifted.graph.input.append(value)
        if (cut := _cut(lifted, lifted.graph.output[0].name)) is not None:
            given = {
                **dict(state.left.inputs),
                value.name: Recipe("uniform", dtype, tuple(shape), -2.0, 2.0, 0),
            }
            yield _with_model(state, cut, given)


def _bypass(attempt: Attempt[ModelPair]) -> None:
    """A node is left out: what uses its output uses an input of the same type."""
    while attempt.any(_bypasses(attempt.best)):
        pass


def _bypasses(state: ModelPair) -> Iterator[ModelPair]:
    model = state.model
    types = _types(model)
    result = model.graph.output[0].name
    for node in model.graph.node:
        for given in node.input:
            if node.output[0] == result or given not in types or types[given] != types.get(node.output[0]):
                continue
            short = ModelProto()
            short.CopyFrom(model)
            for user in short.graph.node:
                user.input[:] = [given if name == node.output[0] else name for name in user.input]
            if (cut := _cut(short, result)) is not None:
                yield _with_model(state, cut, dict(state.left.inputs))


def _neutralize(attempt: Attempt[ModelPair]) -> None:
    """A node becomes an Identity of an input of its type, so that only what the bug needs has a name."""
    while attempt.any(_neutralized(attempt.best)):
        pass


def _neutralized(state: ModelPair) -> Iterator[ModelPair]:
    model = state.model
    types = _types(model)
    for place, node in enumerate(model.graph.node):
        fits = (name for name in node.input if name in types and types[name] == types.get(node.output[0]))
        if node.op_type == "Identity" or (given := next(fits, None)) is None:
            continue
        plain = ModelProto()
        plain.CopyFrom(model)
        plain.graph.node[place].CopyFrom(onnx.helper.make_node("Identity", [given], [node.output[0]]))
        if (cut := _cut(plain, model.graph.output[0].name)) is not None:
            yield _with_model(state, cut, dict(state.left.inputs))


def _types(model: ModelProto) -> Mapping[str, onnx.TypeProto]:
    inferred = onnx.shape_inference.infer_shapes(model).graph
    return {value.name: value.type for value in (*inferred.value_info, *inferred.input, *inferred.output)}


def _with_model(state: ModelPair, model: ModelProto, given: Mapping[str, Input]) -> ModelPair:
    """The state with another left model and those of the inputs that it has."""
    inputs = tuple((one.name, given[one.name]) for one in model.graph.input)
    program = OnnxModel(model.SerializeToString(deterministic=True))
    return replace(state, left=replace(state.left, program=program, inputs=inputs))


def _simplify(attempt: Attempt[ModelPair]) -> None:
    while attempt.any(
        replace(attempt.best, left=replace(attempt.best.left, inputs=inputs))
        for inputs in simplify_inputs(attempt.best.left.inputs)
    ):
        pass


SPEC = ReductionSpec[ModelPair](
    size=_size,
    key=lambda state: f"{state.left.id}:{state.steps}",
    passes=(
        Pass("steps", _drop_steps),
        Pass("narrow", _narrow),
        Pass("lift", _lift),
        Pass("bypass", _bypass),
        Pass("neutralize", _neutralize),
        Pass("simplify", _simplify),
    ),
)

register_format(
    ProgramFormat(
        EquivalentModels.kind,
        load=_load,
        case=_case,
        spec=SPEC,
        words=("rewrites", "nodes", "operators", "outputs", "inputs"),
        valid=lambda state: state.pair() is not None,
    )
)
