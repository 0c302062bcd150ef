from __future__ import annotations

import random

import pytest

from fuzzing.prioritize import greedy
from fuzzing.prioritize.abstraction import Abstract
from fuzzing.prioritize.greedy import Weights, denominator, equal_weights, rarity_weights, search
from fuzzing.prioritize.table import Table, tabulate


def _rows(seed: int, count: int, parameters: int, values: int) -> list[Abstract]:
    draw = random.Random(seed)
    return [{f"p{at}": draw.randrange(values) for at in range(parameters)} for _ in range(count)]


def _picked(table: Table, weights: Weights) -> list[tuple[int, int]]:
    return [(pick.row, pick.score) for pick in search(table, weights)]


@pytest.mark.parametrize("weights", [equal_weights, rarity_weights])
@pytest.mark.parametrize(("parameters", "values"), [(1, 400), (3, 5), (4, 40), (2, 3)])
def test_how_many_rows_are_looked_at_together_changes_nothing(
    weights: Weights, parameters: int, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tabulate(_rows(parameters, 400, parameters, values))
    whole = _picked(table, weights)
    for batch in (1, 3, 40):
        monkeypatch.setattr(greedy, "_FRONT", batch)
        assert _picked(table, weights) == whole


def test_wide_pairs_have_ids_of_their_own() -> None:
    rows = _rows(0, 300, 2, 250)  # 62,500 possible pairs: counted through
    table = tabulate(rows, seeds=rows[:5], defaults={"p0": 9_999})
    assert table.per_column(table.columns.ravel()).tolist()[2] == len({tuple(row.values()) for row in rows})
    assert table.per_column(table.seeds).tolist() == [
        len({row["p0"] for row in rows[:5]}) + 1, len({row["p1"] for row in rows[:5]}), 5
    ]  # fmt: skip


def test_a_score_of_one_is_the_denominator() -> None:
    table = tabulate(_rows(0, 5, 3, 4))
    assert next(search(table, rarity_weights)).score == denominator(table)
