from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.errors import UnknownNameError
from fuzzing.prioritize import opera
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, get, names
from tests.fuzzing.prioritize.prioritize_kit import generate_contexts, generate_instances, instance, order

OPERA = ("opera", "opera-code", "opera-paper", "opera-operator", "opera-parameters", "opera-released")
STRATEGIES = ("source-order", "random", "fast", *OPERA)


def test_all_are_registered() -> None:
    assert {*STRATEGIES, "coverage-total", "coverage-additional"} <= set(names())


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(instances=generate_instances(), context=generate_contexts())
@settings(max_examples=15, deadline=None)
def test_an_order_is_a_permutation_and_comes_again(
    strategy: str, instances: list[Instance], context: Context
) -> None:
    found = order(strategy, instances, context)
    assert sorted(found) == list(range(len(instances)))
    assert order(strategy, instances, context) == found


@given(instances=generate_instances(fewest=2), seed=st.integers())
def test_random_depends_on_the_seed_and_the_ids_alone(instances: list[Instance], seed: int) -> None:
    ids = [instances[at].id for at in order("random", instances, Context(seed=seed))]
    turned = instances[::-1]
    assert [turned[at].id for at in order("random", turned, Context(seed=seed))] == ids


def test_seeds_give_different_random_orders() -> None:
    instances = [instance(number) for number in range(20)]
    assert len({tuple(order("random", instances, Context(seed=seed))) for seed in range(10)}) == 10


@pytest.mark.parametrize("strategy", ["opera", "opera-paper", "opera-parameters"])
def test_several_processes_give_the_same_order_and_evidence(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(0)
    instances = [
        instance(at, draw.choice(["Add", "Pad", "Relu"]), a=draw.randrange(40), b=draw.random() < 0.5)
        for at in range(200)
    ]
    context = Context(explain=True)
    alone = list(get(strategy)(instances, context))
    monkeypatch.setattr(opera, "PARALLEL", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert list(get(strategy)(instances, context)) == alone


def test_an_unknown_strategy_lists_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="opera-parameters, opera-released, random"):
        get("oprea")
