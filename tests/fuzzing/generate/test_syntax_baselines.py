"""DeclGen and the Randoop-like baseline: what they keep is valid, what they draw mostly is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.draws import Draws
from fuzzing.errors import UsageError
from fuzzing.generate import declgen, randoop
from fuzzing.generate.declgen import DeclGen
from fuzzing.generate.isra.settings import Settings
from fuzzing.generate.isra.solver import Generated
from fuzzing.generate.randoop import Randoop
from fuzzing.generate.syntax import Draft, Validator, Vocabulary, accepted, checked
from fuzzing.graph.onnx_writer import to_bytes, to_onnx

OPERATORS = ("Add", "Conv", "Mul", "ReduceMean", "Relu", "LeakyRelu")
FEW = Settings(nodes=(1, 8), opset=18, operators=OPERATORS)
Baseline: TypeAlias = type[DeclGen] | type[Randoop]
both = pytest.mark.parametrize("baseline", [DeclGen, Randoop])


def _some(baseline: Baseline, settings: Settings, count: int = 12) -> list[Generated]:
    generator = baseline(settings)
    return [generator.generate(seed) for seed in range(count)]


@both
@pytest.mark.parametrize("opset", [16, 18, 21])
def test_what_is_kept_is_valid_and_typed_as_onnx_infers(baseline: Baseline, opset: int) -> None:
    for generated in _some(baseline, Settings(nodes=(1, 8), opset=opset, operators=OPERATORS)):
        model = to_onnx(generated.graph)
        onnx.checker.check_model(model, full_check=True)
        again = accepted(generated.graph, checked, 1 << 14)
        assert again is not None
        assert again.types == generated.graph.types
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
    assert generator.tries > 1.3 * accepted_draws


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
    monkeypatch.setattr(declgen, "MOST_TRIES", 20)
    monkeypatch.setattr(randoop, "MOST_TRIES", 20)
    generator = baseline(FEW, lambda model: False)
    with pytest.raises(UsageError, match=r"none of 20 .*--operators"):
        generator.generate(0)
    assert generator.tries == 20


@both
def test_randomness_reaches_every_operator(baseline: Baseline) -> None:
    used = {node.op for item in _some(baseline, FEW, 40) for node in item.graph.nodes}
    assert used == set(OPERATORS)


@both
def test_isras_end_joins_what_nothing_uses(baseline: Baseline) -> None:
    joined = Settings(nodes=(2, 6), opset=18, operators=OPERATORS, joined=True)
    for item in _some(baseline, joined):
        onnx.checker.check_model(to_onnx(item.graph), full_check=True)
        assert [item.graph.producers()[edge].op for edge in item.graph.outputs] == ["Concat"]


@both
def test_several_element_types(baseline: Baseline) -> None:
    several = Settings(nodes=(1, 6), opset=18, operators=OPERATORS, dtypes=("float32", "float16", "int32"))
    graphs = [item.graph for item in _some(baseline, several, 30)]
    assert {type_.dtype for graph in graphs for type_ in graph.types} >= {"float32", "float16", "int32"}


@both
def test_edges_too_large_to_run_are_refused(baseline: Baseline) -> None:
    for item in _some(baseline, FEW, 30):
        assert all(not type_.static or type_.elements <= 1 << 14 for type_ in item.graph.types)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 4), st.integers(1, 4))
def test_taking_nodes_back_leaves_the_draft_as_it_was(seed: int, kept: int, dropped: int) -> None:
    draft = Draft(VOCABULARY, Draws(seed))
    for _ in range(kept):
        draft.node()
    before, mark = draft.graph(), draft.mark()
    for _ in range(dropped):
        draft.node()
    draft.back(mark)
    assert draft.graph() == before


def _unchecked() -> Validator:
    return lambda model: True


def test_onnxs_inference_alone_refuses_shapes_that_do_not_go_together() -> None:
    """So a validator need only say what inference does not."""
    refused: Callable[[Draft], bool] = lambda draft: accepted(draft.graph(), _unchecked(), 1 << 14) is None  # noqa: E731
    drafts = [Draft(VOCABULARY, Draws(seed)) for seed in range(60)]
    for draft in drafts:
        draft.node()
    assert 5 < sum(map(refused, drafts)) < 55


VOCABULARY = Vocabulary(FEW)
