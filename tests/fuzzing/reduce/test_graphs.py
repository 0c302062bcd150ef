"""Graphs with a planted fault in them, reduced on a real compiler behind the fault."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.errors import UsageError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.limits import Limits
from fuzzing.execute.shard import Shard
from fuzzing.generate.case_builder import CaseOrigin
from fuzzing.generate.case_builder import build_case as case_of
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.outcomes import Verdict
from fuzzing.reduce.engine import CLEAN, SAME, Budget, reduce
from fuzzing.reduce.graph_validity import is_valid
from fuzzing.reduce.graphs import SPEC, GraphState, load
from fuzzing.reduce.reduction import HANG_SEARCH, Reduction, reduce_case
from fuzzing.rng import derive_seed
from tests.fuzzing.reduce.faulty_backend import SLOW, SLOW_S

BACKEND = str(Path(__file__).parent / "faulty_backend.py")
pytestmark = pytest.mark.compiler_onnxruntime

#: Operators that onnxruntime and ONNX's reference agree on.
OPERATORS = (
    "Abs", "Add", "Concat", "Conv", "Elu", "MatMul", "Max", "Mul", "Neg", "ReduceMean", "Relu", "Reshape",
    "Sigmoid", "Sin", "Slice", "Softmax", "Split", "Tanh", "Tile", "Transpose",
)  # fmt: skip


def shard(fault: str) -> Shard:
    return Shard("", (), BACKEND, "digest", sys.executable, options={"fault": fault})


def failing(fault: str, nodes: int = 40) -> TestCase:
    """A generated graph that shows the fault."""
    solver = Solver(GeneratorSettings(nodes=(nodes, nodes), opset=18, operators=OPERATORS))
    with Evaluator(shard(fault)) as evaluator:
        for batch in range(8):
            seeds = [derive_seed(3, batch, number) for number in range(10)]
            cases = [case_of(solver.generate(seed), seed, CaseOrigin("isra", "1"), "") for seed in seeds]
            for case, outcome in zip(cases, evaluator.evaluate(cases), strict=True):
                if outcome.verdict.is_failure:
                    return case
    raise AssertionError(f"no graph shows {fault}")


def operators(reduction: Reduction) -> list[str]:
    model = onnx.load_from_string(reduction.case.program.to_bytes())
    onnx.checker.check_model(model, full_check=True)
    return [node.op_type for node in model.graph.node]


def reduced(fault: str) -> Reduction:
    found = reduce_case(failing(fault), shard(fault))
    assert found.confirmed
    assert found.reduced.minimal
    assert found.reduced.runs < 120
    return found


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        ("crash-tile", ["Tile"]),
        ("crash-transpose-reshape", ["Transpose", "Reshape"]),
        ("wrong-sigmoid", ["Sigmoid"]),
        ("wrong-matmul-of-transpose", ["Transpose", "MatMul"]),
    ],
)
def test_of_forty_operators_the_cause_is_left(fault: str, left: list[str]) -> None:
    found = reduced(fault)
    assert operators(found) == left
    assert found.outcome.verdict is found.first.verdict


def test_shapes_and_values_shrink_as_far_as_the_fault_lets_them() -> None:
    found = reduced("wrong-wide-sin")
    assert operators(found) == ["Sin"]
    [(_, given)] = found.case.values()
    assert isinstance(given, Tensor)
    assert given.shape == (3,), "the fault needs three along the first axis"


def test_what_does_not_fail_is_the_callers_mistake() -> None:
    solver = Solver(GeneratorSettings(nodes=(3, 3), opset=18, operators=("Relu",)))
    seed = derive_seed(1)
    good = case_of(solver.generate(seed), seed, CaseOrigin("isra", "1"), "0")
    with pytest.raises(UsageError, match="nothing to reduce"):
        reduce_case(good, shard("crash-elu"))


def onnx_case(graph: str, **inputs: tuple[int, ...]) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {graph}')
    values = [(name, Tensor.of(np.full(shape, 0.5, np.float32))) for name, shape in inputs.items()]
    return TestCase(OnnxModel(model.SerializeToString()), tuple(values), Provenance("t", "t", "", "onnx", ""))


def state_of(case: TestCase) -> GraphState:
    with Evaluator(shard("crash-elu")) as evaluator:
        return load(case, evaluator)


BRANCHED = """(float[2,3] x, float[2,3] y) => (float[2,3] p, float[2,6] q) {
    a = Tanh(x)  b = Mul(a, y)  c = Exp(b)  p = Add(c, x)  q = Concat<axis = 1>(a, c)
}"""


def by(wanted: Sequence[str], start: GraphState, budget: Budget | None = None) -> GraphState:
    """Reduced by a predicate: the graph holds these operators."""

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        kept_operators = [[node.op for node in candidate.graph.nodes] for candidate in candidates]
        for candidate in candidates:
            onnx.checker.check_model(candidate.case().program.to_bytes(), full_check=True)
        return [SAME if set(wanted) <= set(ops) else CLEAN for ops in kept_operators]

    return reduce(start, SPEC, classify, budget=budget).best


@pytest.mark.parametrize("needs_emptiness", [False, True])
def test_an_input_is_empty_only_if_the_failure_needs_that(needs_emptiness: bool) -> None:
    case = onnx_case("(float[0,3] x, float[3] y) => (float[0,3] z) { z = Add(x, y) }", x=(0, 3), y=(3,))

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        empty = [0 in candidate.graph.types[candidate.graph.inputs[0]].lengths for candidate in candidates]
        return [SAME if is_empty or not needs_emptiness else CLEAN for is_empty in empty]

    best = reduce(state_of(case), SPEC, classify).best
    [found, *_] = best.case().values()
    assert isinstance(found[1], Tensor)
    assert (0 in found[1].shape) == needs_emptiness


TAKEN = "(float[2,3] x, int64[1] j) => (float[1,3] z) { z = Gather(x, j) }"


@pytest.mark.parametrize("needs_input", [False, True])
def test_an_operand_is_an_initializer_unless_the_failure_needs_it_at_run_time(needs_input: bool) -> None:
    case = onnx_case(TAKEN, x=(2, 3))
    case = replace(case, inputs=(*case.inputs, ("j", Tensor.of(np.zeros(1, np.int64)))))

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        wanted = [len(one.graph.inputs) > 1 or not needs_input for one in candidates]
        return [SAME if w and is_valid(one) else CLEAN for w, one in zip(wanted, candidates, strict=True)]

    best = reduce(state_of(case), SPEC, classify).best
    onnx.checker.check_model(best.case().program.to_bytes(), full_check=True)
    assert [best.graph.types[edge].dtype for edge in best.graph.inputs] == ["float32", "int64"][
        : 1 + needs_input
    ]


@pytest.mark.parametrize("needs_sign", [False, True])
def test_an_attribute_is_negative_only_if_the_failure_needs_that(needs_sign: bool) -> None:
    case = onnx_case("(float[2,3] x) => (float[2,3] z) { z = Hardmax<axis = -2>(x) }", x=(2, 3))

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        axes = [candidate.graph.nodes[0].attributes.get("axis") for candidate in candidates]
        return [SAME if axis == -2 or (axis == 0 and not needs_sign) else CLEAN for axis in axes]

    best = reduce(state_of(case), SPEC, classify).best
    assert best.graph.nodes[0].attributes["axis"] == (-2 if needs_sign else 0)


SQUARED = "(float[2] x) => (float[2] z) { z = Add(x, x) }"
SQUARED_CONSTANT = "(float[2] y) => (float[2] z) <float[2] x = {1, 2}> { a = Add(x, x)  z = Mul(a, y) }"


@pytest.mark.parametrize(("graph", "name"), [(SQUARED, "x"), (SQUARED_CONSTANT, "y")])
@pytest.mark.parametrize("needs_one", [False, True])
def test_operands_are_one_tensor_only_if_the_failure_needs_that(
    graph: str, name: str, needs_one: bool
) -> None:
    def classify(candidates: Sequence[GraphState]) -> list[str]:
        added = [
            [node.inputs for node in candidate.graph.nodes if node.op == "Add"] for candidate in candidates
        ]
        return [SAME if inputs and (len({*inputs[0]}) == 1 or not needs_one) else CLEAN for inputs in added]

    best = reduce(state_of(onnx_case(graph, **{name: (2,)})), SPEC, classify).best
    onnx.checker.check_model(best.case().program.to_bytes(), full_check=True)
    [add] = best.graph.nodes
    assert (len({*add.inputs}) == 1) == needs_one


@pytest.mark.parametrize(
    "wanted", [["Tanh"], ["Exp"], ["Add"], ["Mul", "Concat"], ["Tanh", "Exp"], ["Mul", "Add"]]
)
def test_every_candidate_is_a_valid_model_and_the_wanted_part_is_left(wanted: list[str]) -> None:
    best = by(wanted, state_of(onnx_case(BRANCHED, x=(2, 3), y=(2, 3))))
    assert sorted({node.op for node in best.graph.nodes}) == sorted(wanted)


def test_an_edge_that_becomes_an_input_holds_what_flowed_through_it() -> None:
    start = state_of(onnx_case(BRANCHED, x=(2, 3), y=(2, 3)))
    by_name = {name: value for name, value in start.values.items() if isinstance(value, Tensor)}
    exp = next(node for node in start.graph.nodes if node.op == "Exp")
    kept_operators = by_name[start.graph.names[exp.inputs[0] or 0]]
    np.testing.assert_allclose(kept_operators.array(), np.tanh(0.5) * 0.5, rtol=1e-6)


OF_UNKNOWN_RANK = """(float[2,3] x) => (float[1] y) {
    one = Constant<value_int = 1>()  size = Size(x)  many = Greater(size, one)
    a = If(many) <then_branch = t () => (float[2,3] b) { b = Identity(x) },
                 else_branch = e () => (float[1,2,3] d) {
                     zero = Constant<value_ints = [0]>()  d = Unsqueeze(x, zero)
                 }>
    c = Exp(a)  row = Constant<value_ints = [-1]>()  f = Reshape(c, row)  y = ReduceMax(f)
}"""


@pytest.mark.parametrize("wanted", ["Exp", "Reshape"])
def test_edges_of_unknown_rank_have_values_and_may_be_cut(wanted: str) -> None:
    start = state_of(onnx_case(OF_UNKNOWN_RANK, x=(2, 3)))
    [exp] = [node for node in start.graph.nodes if node.op == "Exp"]
    for edge in (*exp.inputs, *exp.outputs):
        assert start.graph.types[edge or 0].shape == (2, 3)
    found = start.values[start.graph.names[exp.outputs[0]]]
    assert isinstance(found, Tensor)
    np.testing.assert_allclose(found.array(), np.full((2, 3), np.exp(0.5)), rtol=1e-6)
    assert [node.op for node in by([wanted], start).graph.nodes] == [wanted]


def test_no_edge_that_is_still_used_becomes_an_output() -> None:
    best = by(["Tanh", "Mul", "Exp"], state_of(onnx_case(BRANCHED, x=(2, 3), y=(2, 3))))
    assert [node.op for node in best.graph.nodes] == ["Tanh", "Mul", "Exp"]
    assert best.graph.outputs == best.graph.nodes[-1].outputs


def test_an_input_of_unknown_length_takes_that_of_its_value() -> None:
    start = state_of(onnx_case("(float[N,3] x) => (float[N,3] y) { y = Elu(x) }", x=(2, 3)))
    assert start.graph.types[start.graph.inputs[0]].shape == (2, 3)


def test_declared_shapes_follow_the_values_of_inputs() -> None:
    case = onnx_case(
        "(float[3,4,5] x, int64[3] a) => (float[3,4,1,5,1,1] y) { y = Unsqueeze(x, a) }", x=(3, 4, 5)
    )
    case = replace(case, inputs=(*case.inputs, ("a", Tensor.of(np.array([2, 4, 5])))))
    with Evaluator(shard("crash-elu")) as evaluator:
        best = by(["Unsqueeze"], load(case, evaluator))
        [(_, value)] = evaluator.reference(best.case()) or ()
    assert isinstance(value, Tensor)
    assert len(value.shape) < 6
    assert best.graph.types[best.graph.outputs[0]].shape == value.shape


def test_the_verdict_of_a_reduced_case_is_that_of_the_first() -> None:
    found = reduce_case(
        onnx_case("(float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Elu<alpha = 0.5>(a) }", x=(2, 3)),
        shard("crash-elu"),
    )
    assert (found.first.verdict, found.outcome.verdict) == (Verdict.CRASH, Verdict.CRASH)
    assert operators(found) == ["Elu"]
    assert "alpha" not in str(onnx.load_from_string(found.case.program.to_bytes()).graph.node[0].attribute)
    assert found.case.provenance.test == "t (reduced)"


TWO_ELU = "(float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Elu(a) y = Elu(b) }"


@pytest.mark.slow
def test_candidates_of_a_hang_get_less_time_than_the_smallest_one() -> None:
    limits = Limits(convert_s=6, compile_s=6)
    found = reduce_case(onnx_case(TWO_ELU, x=(2, 3)), replace(shard("hang-elu"), limits=limits))
    assert found.confirmed
    assert found.outcome.verdict is Verdict.HANG
    assert operators(found) == ["Elu"]
    [seconds] = found.outcome.durations.values()
    assert seconds >= 6


@pytest.mark.slow
def test_what_only_takes_longer_than_a_candidate_may_is_no_hang() -> None:
    limits = Limits(convert_s=6, compile_s=6)
    assert limits.with_times(HANG_SEARCH).convert_s < SLOW_S < limits.convert_s
    found = reduce_case(onnx_case(TWO_ELU, x=(2, 3)), replace(shard(SLOW), limits=limits))
    assert not found.confirmed
    assert len(operators(found)) == 3, "the original"


def kept_operators(best: GraphState) -> set[str]:
    return {best.graph.types[edge].dtype for edge in (*best.graph.inputs, *best.graph.outputs)}


def test_types_become_common_where_the_bug_lets_them_and_casts_go_with_them() -> None:
    text = """(float16[2] x, int8[2] i) => (float16[2] z, int8[2] k) {
        y = Cast<to = 11>(x)  w = Exp(y)  z = Cast<to = 10>(w)  k = Abs(i)
    }"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    values = (("x", Tensor.of(np.ones(2, np.float16))), ("i", Tensor.of(np.array([-3, 4], np.int8))))
    origin = Provenance("t", "t", "", "onnx", "")
    start = state_of(TestCase(OnnxModel(model.SerializeToString()), values, origin))
    best = by(["Exp", "Abs", "Cast"], start)
    assert kept_operators(best) == {"float32"}
    assert kept_operators(by(["Exp"], start)) == {"float32"}


LIKE_AN_INPUT = "(float[2] x, double[1] t) => (double[2] y) { y = CastLike(x, t) }"
LIKE_A_CONSTANT = "(float[2] x) => (double[2] y) <double[1] t = {1}> { y = CastLike(x, t) }"


@pytest.mark.parametrize("graph", [LIKE_AN_INPUT, LIKE_A_CONSTANT])
@pytest.mark.parametrize("needs_tensor", [False, True])
def test_a_cast_is_by_a_tensor_only_if_the_failure_needs_that(graph: str, needs_tensor: bool) -> None:
    case = onnx_case(graph, x=(2,))
    if graph == LIKE_AN_INPUT:
        case = replace(case, inputs=(*case.inputs, ("t", Tensor.of(np.ones(1, np.float64)))))

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        found = [
            [(node.op, candidate.graph.types[node.outputs[0]].dtype) for node in candidate.graph.nodes]
            for candidate in candidates
        ]
        wanted = (
            [("CastLike", "float64")] if needs_tensor else [("Cast", "float64")],
            [("CastLike", "float64")],
        )
        return [SAME if nodes in wanted else CLEAN for nodes in found]

    best = reduce(state_of(case), SPEC, classify).best
    onnx.checker.check_model(best.case().program.to_bytes(), full_check=True)
    assert [node.op for node in best.graph.nodes] == ["CastLike" if needs_tensor else "Cast"]
    assert len(best.graph.inputs) == (2 if needs_tensor and graph == LIKE_AN_INPUT else 1)


def test_a_type_that_matters_stays() -> None:
    model = onnx_case("(float16[2] x) => (float16[2] y) { y = Exp(x) }")
    start = state_of(replace(model, inputs=(("x", Tensor.of(np.ones(2, np.float16))),)))

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        return [SAME if "float16" in kept_operators(candidate) else CLEAN for candidate in candidates]

    assert kept_operators(reduce(start, SPEC, classify).best) == {"float16"}


@pytest.mark.parametrize(("given", "left"), [(13, 18), (19, 18), (17, 18)])
def test_the_opset_becomes_one_that_readers_know(given: int, left: int) -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { y = Elu(x) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {given}]> {text}')
    values = (("x", Tensor.of(np.ones((2, 3), np.float32))),)
    case = TestCase(OnnxModel(model.SerializeToString()), values, Provenance("t", "t", "", "onnx", ""))
    assert by(["Elu"], state_of(case)).graph.opset == left


def test_an_operator_that_the_message_names_is_tried_first() -> None:
    start = state_of(onnx_case(BRANCHED, x=(2, 3), y=(2, 3)))

    def classify(candidates: Sequence[GraphState]) -> list[str]:
        return [SAME if "Exp" in {n.op for n in it.graph.nodes} else CLEAN for it in candidates]

    reported = reduce(replace(start, message_words=frozenset({"converter", "of", "Exp"})), SPEC, classify)
    untold = reduce(start, SPEC, classify)
    assert [node.op for node in reported.best.graph.nodes] == ["Exp"]
    assert (reported.steps[0].by, reported.steps[0].run) == ("named", 1)
    assert "named" not in untold.runs_by_pass
    assert SPEC.size(reported.best) == SPEC.size(untold.best)
