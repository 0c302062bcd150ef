"""DeclGen and the Randoop-like baseline: what they keep is valid, what they draw mostly is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.errors import UsageError
from fuzzing.generate import declgen, generators, randoop
from fuzzing.generate.declgen import DeclGen
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.model_drafts import ModelDraft, OperatorSamples
from fuzzing.generate.randoop import Randoop
from fuzzing.generate.shape_inference import ShapeInference
from fuzzing.graph.ir import Builder, Graph, Node
from fuzzing.graph.onnx_writer import to_bytes, to_onnx
from fuzzing.graph.types import TensorType
from fuzzing.rng import Rng

OPERATORS = ("Add", "Conv", "Mul", "ReduceMean", "Relu", "LeakyRelu")
FEW = GeneratorSettings(nodes=(1, 8), opset=18, operators=OPERATORS)
Baseline: TypeAlias = type[DeclGen] | type[Randoop]
both = pytest.mark.parametrize("baseline", [DeclGen, Randoop])


def _some(baseline: Baseline, settings: GeneratorSettings, count: int = 12) -> list[GeneratedGraph]:
    generator = baseline(settings)
    return [generator.generate(seed) for seed in range(count)]


def test_they_are_registered() -> None:
    assert (generators.get("declgen"), generators.get("randoop")) == (DeclGen, Randoop)
    assert {"declgen", "isra", "nnsmith", "randoop"} <= set(generators.list_names())


@both
@pytest.mark.parametrize("opset", [16, 18, 21])
def test_what_is_kept_is_valid_and_typed_as_onnx_infers(baseline: Baseline, opset: int) -> None:
    inference = ShapeInference()
    for generated in _some(baseline, GeneratorSettings(nodes=(1, 8), opset=opset, operators=OPERATORS)):
        model = to_onnx(generated.graph)
        onnx.checker.check_model(model, full_check=True)
        again = inference.infer_types(generated.graph)
        assert again == list(generated.graph.types)
        assert set(generated.ranges) == set(generated.graph.inputs)


@both
def test_one_seed_gives_the_same_bytes_whatever_was_generated_before(baseline: Baseline) -> None:
    forward = [to_bytes(item.graph) for item in _some(baseline, FEW)]
    generator = baseline(FEW)
    backward = [to_bytes(generator.generate(seed).graph) for seed in reversed(range(12))]
    assert forward == backward[::-1]
    assert len(set(forward)) > 6


@both
def test_much_of_what_is_drawn_is_thrown_away_and_counted(baseline: Baseline) -> None:
    generator = baseline(FEW)
    kept = [generator.generate(seed).graph for seed in range(12)]
    accepted_draws = len(kept) if baseline is DeclGen else sum(len(graph.nodes) for graph in kept)
    assert generator.attempts > 1.3 * accepted_draws


@both
def test_the_validator_that_is_handed_in_decides(baseline: Baseline) -> None:
    def without_relu(model: onnx.ModelProto) -> bool:
        return all(node.op_type != "Relu" for node in model.graph.node)

    generator = baseline(FEW, without_relu)
    graphs = [generator.generate(seed).graph for seed in range(12)]
    assert {node.op for graph in graphs for node in graph.nodes} <= set(OPERATORS) - {"Relu"}


@both
def test_when_nothing_is_ever_accepted_it_says_what_to_do(
    baseline: Baseline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declgen, "MAX_ATTEMPTS", 20)
    monkeypatch.setattr(randoop, "MAX_ATTEMPTS", 20)
    generator = baseline(FEW, lambda model: False)
    with pytest.raises(UsageError, match=r"none of 20 .*--operators"):
        generator.generate(0)
    assert generator.attempts == 20


@both
def test_randomness_reaches_every_operator(baseline: Baseline) -> None:
    used = {node.op for item in _some(baseline, FEW, 40) for node in item.graph.nodes}
    assert used == set(OPERATORS)


@both
def test_isras_end_joins_what_nothing_uses(baseline: Baseline) -> None:
    concatenate_outputs = GeneratorSettings(
        nodes=(2, 6), opset=18, operators=OPERATORS, concatenate_outputs=True
    )
    for item in _some(baseline, concatenate_outputs):
        onnx.checker.check_model(to_onnx(item.graph), full_check=True)
        assert [item.graph.producers()[edge].op for edge in item.graph.outputs] == ["Concat"]


@both
def test_several_element_types(baseline: Baseline) -> None:
    several = GeneratorSettings(
        nodes=(1, 6), opset=18, operators=OPERATORS, dtypes=("float32", "float16", "int32")
    )
    graphs = [item.graph for item in _some(baseline, several, 30)]
    assert {type_.dtype for graph in graphs for type_ in graph.types} >= {"float32", "float16", "int32"}


@both
def test_edges_too_large_to_run_are_refused(baseline: Baseline) -> None:
    for item in _some(baseline, FEW, 30):
        assert all(not type_.static or type_.elements <= 1 << 14 for type_ in item.graph.types)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 4), st.integers(1, 4))
def test_taking_nodes_back_leaves_the_draft_as_it_was(seed: int, kept: int, dropped: int) -> None:
    draft = ModelDraft(VOCABULARY, Rng(seed))
    for _ in range(kept):
        draft.node()
    before, mark = draft.graph(), draft.mark()
    for _ in range(dropped):
        draft.node()
    draft.undo_to(mark)
    assert draft.graph() == before


def test_onnx_refuses_much_of_what_has_the_right_syntax() -> None:
    inference = ShapeInference()
    drafts = [ModelDraft(VOCABULARY, Rng(seed)) for seed in range(60)]
    for draft in drafts:
        draft.node()
    assert 5 < [inference.infer_types(draft.graph()) for draft in drafts].count(None) < 55
    assert inference.crashes == 0


def _with_last(graph: Graph, op: str, **attributes: int) -> Graph:
    """The graph with a node more, on its last edge."""
    last = len(graph.types)
    node = Node(op, (last - 1,), (last,), attributes)
    types = (*graph.types, TensorType("float32", None))
    return replace(graph, types=types, nodes=(*graph.nodes, node), outputs=(last,))


def test_an_operator_behind_one_that_is_refused_is_not_looked_at() -> None:
    """Of these two onnx 1.23.2 dies when it infers both at once."""
    builder = Builder(18)
    edge = builder.placeholder(TensorType("float32", (2, 3)))
    builder.node("Transpose", (edge,), (TensorType("float32", None),), {"perm": (0, 0)})
    inference = ShapeInference()
    assert inference.infer_types(_with_last(builder.finish((1,)), "EyeLike")) is None
    assert inference.crashes == 0


def test_a_model_that_onnx_dies_of_is_refused_and_the_next_one_judged() -> None:
    """Split with more outputs than it says: onnx 1.23.2 indexes a vector out of range."""
    floats = TensorType("float32", None)
    deadly, harmless = Builder(18), Builder(18)
    deadly.node(
        "Split", (deadly.placeholder(TensorType("float32", (4, 2))),), (floats,) * 2, {"num_outputs": 1}
    )
    harmless.node("Relu", (harmless.placeholder(TensorType("float32", (2,))),), (floats,))
    inference = ShapeInference()
    assert inference.infer_types(deadly.finish((1, 2))) is None
    assert inference.infer_types(harmless.finish((1,))) == [TensorType("float32", (2,))] * 2
    assert inference.crashes == (1 if onnx.__version__ == "1.23.2" else inference.crashes)


VOCABULARY = OperatorSamples(FEW)
