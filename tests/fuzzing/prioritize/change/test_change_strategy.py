"""The strategy `change`: OPERA's order where nothing is said, most findings a second where something is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.errors import UsageError
from fuzzing.prioritize import strategies
from fuzzing.prioritize.change import Change, FileChange
from fuzzing.prioritize.change.history import Expectations, History
from fuzzing.prioritize.change_aware import EXPLORE
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, Ranked

NAMES = """
Abs Acos Asin Atan Ceil Clip Conv Cos Elu Erf Exp Floor Gelu Gemm Mish Neg Relu Resize Selu Sin Softmax Tan
Tile Transpose
"""
OPERATORS = tuple(NAMES.split())
CASES = 8  # of each operator


def instances() -> list[Instance]:
    """Of each operator so many cases that differ in rank and in one attribute."""
    return [
        Instance(
            f"{operator}-{number}",
            operator,
            (("X", {"tensor": ["float32", [2] * (1 + number % 4)]}), ("axis", number - 3)),
            "onnx",
        )
        for number in range(CASES)
        for operator in OPERATORS
    ]


def changed(*operators: str) -> Change:
    folder = "src/frontends/onnx/frontend/src/op"
    text = "namespace op {\nOutputVector %s(const Node& node) {\n    return convert(%d);\n}\n}\n"
    return Change(
        tuple(
            FileChange(f"{folder}/{one}.cpp", None, text % (one, 1), text % (one, 2))
            for one in map(str.lower, operators)
        )
    )


def record(
    case: str, runs: int = 10, findings: int = 0, days: float | None = None, seconds: float = 0.1
) -> str:
    return json.dumps(
        {
            "id": case,
            "operator": case.partition("-")[0],
            "runs": runs,
            "findings": findings,
            "last_finding_days": days,
            "seconds": seconds,
        }
    )


def ranked(strategy: str = "change", **context: Any) -> list[Ranked]:
    return list(strategies.get(strategy)(instances(), Context(**context)))


def order(strategy: str = "change", **context: Any) -> list[str]:
    cases = instances()
    return [cases[one.instance_index].id for one in ranked(strategy, **context)]


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"change": None, "history": None},
        {"change": Change(()), "history": History({})},
        {"change": Change((FileChange("README.md", None, "a", "Resize"),))},
        {"change": changed("NoSuchOperator")},
    ],
)
def test_it_is_opera_where_nothing_is_said(context: Mapping[str, Any]) -> None:
    for seed in (1, 7):
        assert order(seed=seed, **context) == order("opera", seed=seed)


def test_what_is_touched_comes_first() -> None:
    found = order(change=changed("Resize"))
    share = [one.startswith("Resize") for one in found[: CASES + 2]]
    assert sum(share) == CASES
    assert found[0].startswith("Resize")


def test_a_share_of_the_time_goes_to_the_rest() -> None:
    found = ranked(change=changed("Resize"), explain=True)
    turns = [bool(one.why["exploring"]) for one in found]
    for place in range(1, len(turns) + 1):
        assert sum(turns[:place]) >= EXPLORE * (place - 1) - 1e-9
    explored = [one.instance_index for one in found if one.why["exploring"]]
    opera = [one.instance_index for one in ranked("opera")]
    assert explored == sorted(explored, key=opera.index)
    cases = instances()
    assert any(cases[index].operator != "Resize" for index in explored[:3])


def test_without_exploration_all_that_is_touched_comes_before_the_rest() -> None:
    found = order(change=changed("Resize", "Softmax"), options={"explore": "0"})
    assert {one.partition("-")[0] for one in found[: 2 * CASES]} == {"Resize", "Softmax"}
    assert {one.partition("-")[0] for one in found[:2]} == {"Resize", "Softmax"}  # both are tried at once


def test_cheap_cases_come_before_dear_ones_that_promise_as_much() -> None:
    lines = [record(f"Resize-{n}", seconds=5.0) for n in range(CASES)]
    lines += [record(f"Softmax-{n}", seconds=0.01) for n in range(CASES)]
    found = order(
        change=changed("Resize", "Softmax"), history=History.from_lines(lines), options={"explore": "0"}
    )
    assert {one.partition("-")[0] for one in found[:CASES]} == {"Softmax"}


def test_what_failed_lately_comes_before_what_failed_long_ago() -> None:
    lines = [record(f"{operator}-{n}") for operator in OPERATORS for n in range(CASES)]
    lines += [record("Relu-3", findings=5, days=1.0), record("Abs-3", findings=5, days=300.0)]
    found = order(history=History.from_lines(lines))
    assert found.index("Relu-3") < found.index("Abs-3")
    relu = [found.index(f"Relu-{n}") for n in range(CASES)]
    transpose = [found.index(f"Transpose-{n}") for n in range(CASES)]
    assert sum(relu) < sum(transpose)  # its operator's other cases gain by it too


def test_a_known_failure_does_not_come_before_what_was_touched() -> None:
    lines = [record(f"{operator}-{n}") for operator in OPERATORS for n in range(CASES)]
    lines += [record("Relu-3", runs=100, findings=100, days=0.0)]
    found = order(change=changed("Resize"), history=History.from_lines(lines), options={"explore": "0"})
    assert found[0].startswith("Resize")


def test_why_tells_what_people_want_to_know() -> None:
    lines = [record("Resize-0", runs=4, findings=1, days=2.0, seconds=0.5)]
    cases = instances()
    found = ranked(change=changed("Resize"), history=History.from_lines(lines), explain=True)
    [why] = [one.why for one in found if cases[one.instance_index].id == "Resize-0"]
    assert why["touched"] == ["src/frontends/onnx/frontend/src/op/resize.cpp, line 3: resize was changed"]
    assert why["weight"] == 0.8
    assert why["history"] == {"runs": 4, "findings": 1, "last_finding_days": 2.0, "times_average": 1.81}
    assert why["seconds"] == pytest.approx(0.49, abs=0.01)
    assert isinstance(why["opera"], float)
    assert json.loads(json.dumps(why)) == why


def test_settings_are_checked() -> None:
    for options in ({"explore": "1"}, {"trust": "x"}, {"half_life": "0"}, {"trust": "nan"}):
        with pytest.raises(UsageError, match=r"strategy change|shares"):
            ranked(change=changed("Resize"), options=options)


def test_a_case_without_a_record_is_expected_to_be_like_its_operator() -> None:
    cases = instances()
    lines = [record(f"Conv-{n}", runs=1_000, seconds=2.0) for n in range(3)]
    lines += [record(f"Abs-{n}", runs=1_000, seconds=0.1, findings=100, days=0.0) for n in range(3)]
    expected = Expectations(History.from_lines(lines), cases)
    by_id = {one.id: expected.of(one) for one in cases}
    assert by_id["Conv-7"].seconds == pytest.approx(2.0, rel=0.01)
    assert by_id["Abs-7"].seconds == pytest.approx(0.1, rel=0.02)
    assert 0.1 < by_id["Relu-7"].seconds < 2.0
    assert by_id["Conv-7"].findings < by_id["Relu-7"].findings < by_id["Abs-7"].findings


FEW = 60


@settings(max_examples=15, deadline=None)
@given(
    st.permutations(range(FEW)),
    st.lists(st.sampled_from(OPERATORS), max_size=3, unique=True),
    st.lists(
        st.tuples(
            st.integers(0, FEW - 1),
            st.integers(0, 50),
            st.integers(0, 50),
            st.floats(0, 1e6),
        ),
        max_size=20,
    ),
    st.integers(0, 3),
)
def test_the_order_is_a_permutation_and_always_the_same(
    permutation: Sequence[int], operators: list[str], runs: list[tuple[int, int, int, float]], seed: int
) -> None:
    cases = [instances()[place] for place in permutation]
    lines = [record(cases[at].id, runs=n, findings=f, days=days, seconds=days) for at, n, f, days in runs]
    context = Context(change=changed(*operators), history=History.from_lines(lines), seed=seed)
    found = [one.instance_index for one in strategies.get("change")(cases, context)]
    assert sorted(found) == list(range(len(cases)))
    assert found == [one.instance_index for one in strategies.get("change")(cases, context)]
