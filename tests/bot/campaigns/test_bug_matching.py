"""Which bug a finding belongs to."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.classify.bug_matching import (
    KnownBug,
    match_bug_keys,
    pattern_operators,
    same_symptom,
    underlying_bug,
)
from fuzzing.triage.signature import Signature, compute_key
from fuzzing.triage.traits import Traits


def fields(operator: str = "Add", verdict: str = "crash") -> dict[str, object]:
    return {"verdict": verdict, "operator": operator, "complaint": "no", "error": "RuntimeError"}


def reduced(operator: str = "Add", *needs: str) -> Signature:
    made = fields(operator) | {"dtypes": ["float"], "needs": sorted(needs), "component": ""}
    return Signature(compute_key(made), "", made)


def known(signature: Signature, key: str = "") -> KnownBug:
    return KnownBug(key or signature.key, signature.fields)


def test_the_bug_is_the_one_that_needs_the_least() -> None:
    less, more, other = reduced("Pad", "Pad.mode"), reduced("Pad", "Pad.mode", "rank 4"), reduced("Pad(Abs)")
    assert match_bug_keys([more, less, other], []) == [less.key, less.key, other.key]


def test_a_bug_keeps_the_key_it_was_first_known_by() -> None:
    less, more = reduced("Pad", "Pad.mode"), reduced("Pad", "Pad.mode", "rank 4")
    assert match_bug_keys([less], [known(more)]) == [more.key], "though the case now known needs less"
    assert match_bug_keys([more], [known(less)]) == [less.key]
    assert match_bug_keys([less, more], [known(more, "first")]) == ["first", "first"]
    assert match_bug_keys([reduced("Slice")], [known(more)]) == [reduced("Slice").key]


def test_of_what_is_wrong_upstream_its_own_needs_count() -> None:
    """A call of `mm` that adds and reshapes has more needs than one of `bmm`, and shows a bug of fewer."""

    def upstream(api: str, root: str, *needs: str) -> Signature:
        shown = {"verdict": "wrong_result", "complaint": "wrong type (float32 instead of int64)", "needs": []}
        inner = {**shown, "operator": root, "dtypes": ["int"], "needs": list(needs)}
        full = {**fields(api, "wrong_result"), **shown, "root": inner}
        return Signature(compute_key(full), "", full)

    few, many = upstream("torch.tensordot", "mm", "rank 2"), upstream("torch.bmm", "bmm", "rank 2", "rank 3")
    assert match_bug_keys([many, few], []) == match_bug_keys([few, few], [])


needs = st.sets(st.sampled_from(["Pad.mode", "Pad.axes", "rank 1", "rank 2"]))


@given(
    st.lists(needs, min_size=1, max_size=6), st.lists(needs, max_size=3), st.randoms(use_true_random=False)
)
def test_the_order_of_findings_makes_no_difference(
    given_: list[set[str]], there: list[set[str]], shuffled: random.Random
) -> None:
    signatures = [reduced("Pad", *some) for some in given_]
    bugs = [known(reduced("Pad", *some)) for some in there]
    keys = dict(zip([one.key for one in signatures], match_bug_keys(signatures, bugs), strict=True))
    shuffled.shuffle(signatures)
    shuffled.shuffle(bugs)
    assert dict(zip([one.key for one in signatures], match_bug_keys(signatures, bugs), strict=True)) == keys


def raw(operator: str = "", complaint: str = "no", verdict: str = "crash") -> Signature:
    made = fields(operator, verdict) | {"complaint": complaint}
    return Signature(compute_key(made), "", made)


def test_what_was_not_reduced_joins_the_bug_whose_operators_it_holds() -> None:
    bugs = [known(reduced("Reshape(Transpose)", "Transpose.perm", "rank 2"))]
    holds = Traits("", operators=("Abs", "Reshape", "Transpose"), needs=("Transpose.perm", "rank 4"))
    assert underlying_bug(raw(), holds, bugs) == bugs[0].key
    assert underlying_bug(raw(), Traits("", operators=("Reshape",)), bugs) == ""
    assert underlying_bug(raw(), Traits("", operators=holds.operators), bugs) == "", "the attribute is needed"
    assert underlying_bug(raw(complaint="else"), holds, bugs) == ""
    assert underlying_bug(raw(), holds, [known(raw())]) == "", "a bug that was not reduced is behind nothing"


@pytest.mark.parametrize(
    ("api", "key"),
    [("torch.nonzero", "k"), ("torch.Tensor.nonzero", "k"), ("torch.Tensor.count_nonzero", "")],
)
def test_a_method_that_was_not_reduced_joins_the_bug_of_its_function(api: str, key: str) -> None:
    bug = known(reduced("torch.nonzero"), "k")
    assert underlying_bug(raw(api), Traits(api, operators=(api,)), [bug]) == key


@pytest.mark.parametrize("verdict", ["wrong_result", "hang", "out_of_memory"])
def test_an_effect_in_a_program_of_several_operators_belongs_to_no_bug(verdict: str) -> None:
    """Which of the operators is wrong is not known, though one of them has a bug with this effect."""
    bug = known(Signature("k", "", fields(verdict=verdict) | {"dtypes": ["float"], "needs": []}))
    alone, among = Traits("", operators=("Add",)), Traits("", operators=("Add", "Sin"))
    assert underlying_bug(raw("Add", verdict=verdict), alone, [bug]) == "k"
    assert underlying_bug(raw("Add", verdict=verdict), among, [bug]) == ""


def test_of_several_the_one_that_needs_the_least_is_behind_it() -> None:
    bugs = [known(reduced("Add", "Add broadcasts")), known(reduced("Add"))]
    traits = Traits("", operators=("Add",), needs=("Add broadcasts",))
    assert underlying_bug(raw("Add"), traits, bugs) == reduced("Add").key


def test_one_way_of_being_wrong_is_enough() -> None:
    both = raw(complaint="wrong shapes, wrong values", verdict="wrong_result").fields
    assert same_symptom(both, raw(complaint="wrong values", verdict="wrong_result").fields)
    assert not same_symptom(raw(complaint="wrong values", verdict="wrong_result").fields, both)
    assert not same_symptom(raw(complaint="a, b").fields, raw(complaint="a").fields), (
        "an exception is said whole"
    )


def test_the_operators_of_a_pattern() -> None:
    assert pattern_operators("If[Identity; Split | Split](Equal)") == [
        "If",
        "Identity",
        "Split",
        "Split",
        "Equal",
    ]
    assert pattern_operators("Reshape(Transpose); torch.cdist") == ["Reshape", "Transpose", "torch.cdist"]


@pytest.mark.parametrize("first", [True, False])
def test_a_bug_with_an_operand_as_input_is_that_with_it_as_initializer(*, first: bool) -> None:
    """Whichever of their keys is the smaller, and whether or not the bug was known before."""
    for number in range(8):
        initializer, taken = (
            Signature(compute_key(made), "", made)
            for types in (["float"], ["float", "int"])
            for made in [reduced(f"Op{number}").fields | {"dtypes": types, "frontend": "ONNX"}]
        )
        bugs = [known(initializer)] if first else []
        assert match_bug_keys([taken, initializer], bugs) == [initializer.key] * 2


def test_a_bug_of_an_earlier_release_explains_what_is_proven_since() -> None:
    """Its fields say nothing of what was proven, and its key knows no sign."""
    old = reduced("Pad", "Pad.axis")
    fresh = reduced("Pad", "Pad.axis", "Pad.axis negative").fields | {"proven": ["Pad.axis negative"]}
    signature = Signature(compute_key(fresh), "", fresh)
    assert match_bug_keys([signature], [known(old)]) == [old.key]
    now = old.fields | {"proven": []}
    assert compute_key(now) == old.key
    assert match_bug_keys([signature], [KnownBug(old.key, now)]) == [signature.key]
