"""Laws of the tally: models may be dealt, renamed and reordered as one likes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto

from fuzzing.coverage import GraphCounts, Tally, extract_scopes, metrics_of, operators
from fuzzing.errors import InternalError
from tests.fuzzing.coverage.coverage_kit import SIX, build_tally, first_model, random_model, second_model

ISRA = operators.get("isra")
MODELS = [random_model(seed, nodes=2 + 3 * seed, closing=seed % 2 == 0) for seed in range(8)]
WHOLE, FIGURES = build_tally(ISRA, *MODELS)


def tally(models: Iterable[ModelProto]) -> Tally:
    return build_tally(ISRA, *models)[0]


@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=8), st.permutations(range(4)), st.permutations(range(8))
)
def test_models_may_be_dealt_to_tallies_in_any_way(
    hands: list[int], order: list[int], dealt: list[int]
) -> None:
    parts = [tally(MODELS[at] for at in dealt if hands[at] == hand) for hand in order]
    merged = Tally(ISRA)
    for part in parts:
        merged.merge(part)
    assert merged == WHOLE
    assert metrics_of(merged) == metrics_of(WHOLE)


@given(st.permutations(range(3)), st.booleans())
def test_merging_is_associative_with_the_empty_tally_as_neutral(order: list[int], left: bool) -> None:
    hands = [MODELS[:2], MODELS[2:3], MODELS[3:]]
    a, b, c = (tally(hands[at]) for at in order)
    if left:
        a.merge(b)
        a.merge(c)
    else:
        b.merge(c)
        a.merge(b)
    a.merge(Tally(ISRA))
    assert a == WHOLE


@given(st.permutations(range(8)))
def test_only_what_is_fresh_depends_on_the_order(order: list[int]) -> None:
    """Each graph's released NSA does; its mean does not, as every set of attributes is fresh once."""
    _, figures = build_tally(ISRA, *(MODELS[at] for at in order))
    for at, one in zip(order, figures, strict=True):
        assert one._replace(new_attributes=0) == FIGURES[at]._replace(new_attributes=0)
    released = sum(one.shapes + one.new_attributes for one in figures) / len(figures)
    assert released == pytest.approx(metrics_of(WHOLE)["NSA"]["released"]["value"])


def test_new_attributes_are_not_summed() -> None:
    """Their sum over models depends on how the models are divided among tallies."""
    assert set(WHOLE.sums) == set(GraphCounts._fields) - {"new_attributes"}


def test_nsa_as_released_of_one_graph_is_less_behind_another() -> None:
    _, [_, behind] = build_tally(SIX, first_model(), second_model())
    _, [before, _] = build_tally(SIX, second_model(), first_model())
    assert (behind.new_attributes, before.new_attributes) == (1, 3)
    assert behind.attributes == before.attributes == 3


def test_tallies_of_different_operators_do_not_merge() -> None:
    with pytest.raises(InternalError, match="six and isra do not merge"):
        Tally(SIX).merge(Tally(ISRA))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans(), st.randoms(use_true_random=False))
def test_names_and_the_order_of_independent_nodes_do_not_matter(
    seed: int, nodes: int, closing: bool, rng: random.Random
) -> None:
    model = random_model(seed, nodes, closing)
    plain, figures = build_tally(ISRA, model)
    other = renamed(reordered(model, rng), rng)
    changed, changed_figures = build_tally(ISRA, other)
    assert changed == plain
    assert changed_figures == figures


def reordered(model: ModelProto, rng: random.Random) -> ModelProto:
    """The model with its nodes in another topological order, and what it tells of its tensors shuffled."""
    ready, waiting = {value.name for value in model.graph.input}, list(model.graph.node)
    order: list[NodeProto] = []
    while waiting:
        free = [node for node in waiting if ready.issuperset(node.input)]
        order.append(rng.choice(free))
        ready.update(order[-1].output)
        waiting.remove(order[-1])
    return replaced(model, order, rng)


def replaced(model: ModelProto, nodes: Sequence[NodeProto], rng: random.Random) -> ModelProto:
    made = ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:], made.graph.value_info[:]
    made.graph.node.extend(nodes)
    reported = list(model.graph.value_info)
    made.graph.value_info.extend(rng.sample(reported, len(reported)))
    return made


def renamed(model: ModelProto, rng: random.Random) -> ModelProto:
    """The model with other names for tensors, and for all nodes but those that close it."""
    made = ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    values = [*graph.input, *graph.value_info, *graph.output]
    known = sorted({value.name for value in values} | {name for node in graph.node for name in node.output})
    names = dict(zip(known, rng.sample(range(10**6), len(known)), strict=True))
    for value in values:
        value.name = f"v{names[value.name]}"
    for at, node in enumerate(graph.node):
        node.input[:] = [f"v{names[name]}" for name in node.input]
        node.output[:] = [f"v{names[name]}" for name in node.output]
        if not node.name.startswith(("flatten_", "concat_outputs")):
            node.name = f"node{(at * 7919) % 1009}"
    return made


def test_a_tally_forgets_the_models_themselves() -> None:
    """The same models again change numbers, and nothing that grows."""
    twice = tally([*MODELS, *MODELS])
    assert twice.models == 2 * WHOLE.models
    for grown in ("edges", "triples", "in_degrees", "out_degrees", "attributes", "inputs", "types"):
        assert len(getattr(twice.observations, grown)) == len(getattr(WHOLE.observations, grown))


def test_figures_are_returned_for_each_model() -> None:
    tally_now = Tally(ISRA)
    figures = tally_now.add(extract_scopes(MODELS[3]))
    assert isinstance(figures, GraphCounts)
    assert figures.nodes == 11
