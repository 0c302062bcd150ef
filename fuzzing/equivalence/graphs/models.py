"""Pairs of equal models: generated graphs, and what rewrites or saturation make of them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import version

import onnx
from onnx import ModelProto, helper

from fuzzing.cases import EquivalentModels, OnnxModel, Provenance, Recipe, Tensor, TestCase
from fuzzing.equivalence.graphs import saturation
from fuzzing.equivalence.graphs.editor import Given
from fuzzing.equivalence.graphs.tangle import OPSETS, SATURATION, Step, apply_steps, tangle
from fuzzing.errors import CaseFormatError
from fuzzing.generate import case_builder
from fuzzing.generate.isra import GeneratorSettings, Solver
from fuzzing.rng import Rng, derive_seed

SOURCE = "eagle-graphs"
LIBRARY = "onnx"
STEPS = (1, 8)
#: Operators that have rewrites of their own; every second model is of these only.
_REWRITTEN = (
    "Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MatMul", "Gemm", "Relu", "Add",
    "Mul", "Sub", "Div", "Softmax", "LogSoftmax", "Transpose", "Reshape", "Sigmoid", "Tanh", "Max", "Min",
    "ReduceSum", "ReduceMean", "ReduceMax", "Abs", "Neg", "Softplus", "Softsign", "Sqrt", "Exp", "Log",
    "Concat", "HardSwish",
)  # fmt: skip


def make_pair(number: int, seed: int) -> TestCase | None:
    """The pair of a number; None if no rewrite applied to its model."""
    own = derive_seed(seed, SOURCE, number)
    rng = Rng(derive_seed(own, "settings"))
    name = f"{seed}/{number}"
    if number % 4 == 3:
        return _saturated(rng, name, own)
    opset, dtype = rng.between(*OPSETS), rng.choice(("float32", "float32", "float32", "float64"))
    generated = _solver(opset, dtype, number % 2 == 0).generate(own)
    origin = case_builder.CaseOrigin(SOURCE, version(LIBRARY), LIBRARY)
    left = case_builder.build_case(generated, own, origin, name)
    assert isinstance(left.program, OnnxModel)
    model = onnx.load_model_from_string(left.program.model)
    _, steps = tangle(model, rng, rng.between(*STEPS), _given(left))
    return pair_of(left, steps) if steps else None


@cache
def _solver(opset: int, dtype: str, rewritten: bool) -> Solver:
    operators = _REWRITTEN if rewritten else ()
    return Solver(GeneratorSettings(nodes=(1, 6), opset=opset, dtypes=(dtype,), operators=operators))


def pair_of(left: TestCase, steps: list[Step]) -> TestCase | None:
    """The pair of a model's case and the steps that make its other side; None if none of them applies."""
    assert isinstance(left.program, OnnxModel)
    right, done = apply_steps(onnx.load_model_from_string(left.program.model), steps, _given(left))
    if not done:
        return None
    subject = json.dumps([asdict(step) for step in done])
    program = EquivalentModels(left.program, _program(right), "graph", subject)
    operator = " ".join(dict.fromkeys(step.rewrite for step in done))
    return replace(
        left, program=program, provenance=replace(left.provenance, operator=operator), expected=None
    )


def parts_of(pair: TestCase) -> tuple[TestCase, list[Step]]:
    """The inverse of `pair_of`; raises CaseFormatError if the pair does not hold its steps."""
    program = pair.program
    assert isinstance(program, EquivalentModels)
    try:
        steps = [Step(**item) for item in json.loads(program.subject)]
    except (ValueError, TypeError) as error:
        raise CaseFormatError(f"the pair {pair.id} does not hold its steps: {error}") from None
    return replace(pair, program=program.left), steps


def _given(case: TestCase) -> Given:
    """The case's inputs as arrays."""
    return {name: value.array() for name, value in case.values() if isinstance(value, Tensor)}


def _program(model: ModelProto) -> OnnxModel:
    return OnnxModel(model.SerializeToString(deterministic=True))


def _saturated(rng: Rng, name: str, seed: int) -> TestCase | None:
    """The simplest form of a random term of matrices, and what saturation makes of that."""
    model, shapes = _arithmetic(rng)
    forms = saturation.saturate(model, "y")
    if forms is None:
        return None
    inputs = tuple(
        (given, Recipe("uniform", "float32", shape, -2.0, 2.0, rng.seed())) for given, shape in shapes.items()
    )
    provenance = Provenance(SOURCE, name, SATURATION, LIBRARY, version(LIBRARY), seed)
    return pair_of(TestCase(_program(forms[0]), inputs, provenance), [Step(SATURATION)])


def _arithmetic(rng: Rng) -> tuple[ModelProto, dict[str, tuple[int, ...]]]:
    """A model of up to six operators on square matrices, with the shapes of its inputs."""
    size = rng.between(1, 9)
    names, nodes = ["a", "b", "c"], []
    for place in range(rng.between(2, 6)):
        operator = rng.choice(
            ("Add", "Sub", "Mul", "Max", "Min", "MatMul", "Neg", "Abs", "Relu", "Transpose")
        )
        count = 1 if operator in ("Neg", "Abs", "Relu", "Transpose") else 2
        # The last value is always used, so that no node is dead.
        given = [names[-1], *(rng.choice(names) for _ in range(count - 1))]
        names.append(f"t{place}")
        nodes.append(helper.make_node(operator, given, [names[-1]]))
    nodes[-1].output[0] = "y"
    used = [name for name in ("a", "b", "c") if any(name in node.input for node in nodes)]
    values = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [size, size]) for n in (*used, "y")]
    graph = helper.make_graph(nodes, "g", values[:-1], values[-1:])
    opset = helper.make_opsetid("", OPSETS[1])
    return helper.make_model(graph, opset_imports=[opset], ir_version=10), dict.fromkeys(used, (size, size))
