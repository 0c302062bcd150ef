from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.run.repeats import first_of_each, growing_groups


def test_one_of_each_signature_comes_before_others_of_it() -> None:
    assert first_of_each({"a": "x", "b": "x", "c": "y", "d": "x", "e": "z"}) == ["a", "c", "e", "b", "d"]


@given(st.dictionaries(st.text(max_size=3), st.sampled_from("xyz"), max_size=12))
def test_nothing_is_lost_and_every_signature_leads(keys: dict[str, str]) -> None:
    order = first_of_each(keys)
    assert sorted(order) == sorted(keys)
    kinds = set(keys.values())
    assert {keys[item] for item in order[: len(kinds)]} == kinds


def test_groups_grow_and_keep_the_order() -> None:
    assert list(growing_groups(list("abcdefgh"), 1)) == [["a"], ["b", "c"], ["d", "e", "f", "g"], ["h"]]
