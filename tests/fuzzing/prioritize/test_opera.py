from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.errors import UsageError
from fuzzing.prioritize.greedy import Weights, equal_weights, rarity_weights, search
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, get
from fuzzing.prioritize.table import tabulate
from tests.fuzzing.prioritize.opera_reference import plain_order
from tests.fuzzing.prioritize.prioritize_kit import (
    CountedSuite,
    generate_contexts,
    generate_instances,
    instance,
    order,
)

MODES = {"opera": "code", "opera-code": "code", "opera-paper": "paper"}


@pytest.mark.parametrize(("strategy", "mode"), [("opera", "code"), ("opera-paper", "paper")])
@given(instances=generate_instances(), context=generate_contexts())
@settings(max_examples=60, deadline=None)
def test_the_order_is_that_of_computing_every_score_anew(
    strategy: str, mode: str, instances: list[Instance], context: Context
) -> None:
    assert order(strategy, instances, context) == plain_order(instances, context, mode)


@given(instances=generate_instances(most=30), seed=st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_many_rows_of_one_operator(instances: list[Instance], seed: int) -> None:
    one = [instance(at, "Conv", "torch", **dict(found.parameters)) for at, found in enumerate(instances)]
    assert order("opera", one, Context(seed=seed)) == plain_order(one, Context(seed=seed), "code")


@given(rows=st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)), max_size=40))
@settings(deadline=None)
@pytest.mark.parametrize("weights", [equal_weights, rarity_weights])
def test_an_emission_never_raises_a_score(weights: Weights, rows: list[dict[str, int]]) -> None:
    scores = [pick.score for pick in search(tabulate(rows), weights)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("strategy", ["opera", "opera-paper"])
def test_an_operator_the_suite_lacks_has_the_greatest_weight(strategy: str) -> None:
    instances = [instance(1, "Add", a=1), instance(2, "Sin", a=1), instance(3, "Mul", a=1)]
    suite = CountedSuite({"Add": 3, "Mul": 1})
    ranked = list(get(strategy)(instances, Context({"torch": suite})))
    assert [one.instance_index for one in ranked] == [1, 2, 0]
    assert ranked[0].why["operator"] == {"opera": 1.0, "opera-paper": 2.0}[strategy]


def test_the_weight_is_the_share_that_the_recorded_suite_leaves_uncovered() -> None:
    tests = [instance(9, "Add", a=0, b="x")]
    instances = [
        instance(1, "Add", a=0, b="x"),
        instance(2, "Add", a=5, b="x"),
        instance(3, "Add", a=-1, b="x"),
    ]
    ranked = list(get("opera")(instances, Context({"": CountedSuite({}, tests)})))
    # a: 1 of 3 values, b: 1 of 1, the pair: 1 of 3
    assert ranked[0].why["operator"] == pytest.approx(1 - 1 / 9)
    # the first case says nothing that the suite does not: it comes when all else has been said
    assert [one.instance_index for one in ranked] == [1, 2, 0]


def test_defaults_count_as_seen() -> None:
    left_out = next(get("opera")([instance(1, given=["a"], a=1, b=7)], Context(explain=True)))
    given_all = next(get("opera")([instance(1, given=["a", "b"], a=1, b=7)], Context(explain=True)))
    assert left_out.why["new"] == ["a"]
    assert given_all.why["new"] == ["a", "b"]


@pytest.mark.parametrize("strategy", ["opera", "opera-paper", "opera-parameters"])
def test_operators_of_one_parameter_or_none(strategy: str) -> None:
    instances = [
        instance(1, "Rand"), instance(2, "Rand"), instance(3, "Abs", a=1), instance(4, "Abs", a=-5),
        instance(5, "Abs", a=1),
    ]  # fmt: skip
    found = order(strategy, instances)
    assert sorted(found) == list(range(5))
    assert set(found[:3]) >= {0, 2}
    assert found.index(3) < found.index(4)


def test_what_openvino_once_refused_goes_to_the_end_only_if_asked() -> None:
    def made(number: int, dtype: str, shape: Sequence[int]) -> Instance:
        return instance(number, "torch.abs", input={"tensor": [dtype, list(shape)]})

    instances = [made(1, "complex128", [2]), made(2, "float32", [1] * 6), made(3, "float32", [2])]
    assert order("opera", instances)[0] == 0
    assert order("opera", instances, Context(backend="openvino"))[0] == 0
    requested = Context(backend="openvino", options={"opera.filter": "released"})
    assert order("opera", instances, requested)[0] == 2
    with pytest.raises(UsageError, match="none or released"):
        order("opera", instances, Context(options={"opera.filter": "x"}))


def test_the_operators_weight_alone_goes_operator_by_operator() -> None:
    instances = [instance(n, name, a=n) for n, name in enumerate(["Add", "Sin", "Add", "Mul", "Sin"])]
    suite = CountedSuite({"Add": 8, "Mul": 1})
    assert order("opera-operator", instances, Context({"torch": suite})) == [1, 4, 3, 0, 2]


def test_what_is_new_of_a_case_is_told() -> None:
    instances = [instance(1, a=1, b="x"), instance(2, a=1, b="y")]
    first, second = list(get("opera")(instances, Context(explain=True)))
    assert first.why == {"opera": 1.0, "operator": 1.0, "diversity": 1.0, "new": ["a", "b"], "new_pairs": 1}
    assert second.why["new"] == ["b"]
