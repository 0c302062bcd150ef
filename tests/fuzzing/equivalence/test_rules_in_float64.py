"""Every rule that compiles nothing is an equality: in float64, its sides agree to 1e-6."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws, pairs, rule
from fuzzing.generate.docter.trials import TrialPlan
from fuzzing.rng import Rng, derive_seed
from tests.fuzzing.equivalence.pair_helpers import in_float64, pair_for, run_side, sides_of, subject_of

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of settings that cost time

RULES = tuple(one.name for one in rule.select("all") if not one.compiles)
#: Compared pairs of each rule, and those drawn for them at most.
PAIRS, DRAWN = 4, 150
#: They are about narrower types, which stay as drawn; their results are rounded to float32.
NARROW = frozenset({"up-cast", "cast", "finite-differences"})


def drawn(one: rule.Rule) -> Iterator[TestCase]:
    """Pairs in float64, of APIs in an order that the rule's name decides."""
    apis = sorted(one.apis(), key=lambda api: derive_seed(0, one.name, api))
    for api in apis:
        if one.draw is not None:
            subjects = [subject_of(one.name, api, seed) for seed in range(max(1, PAIRS // len(apis)))]
        else:
            calls = TrialPlan(count=1, seed=0).draw_calls(api)
            subjects = [case for _, case in calls if isinstance(case, TestCase)]
        wide = subjects if one.name in NARROW else map(in_float64, subjects)
        made = (pairs.make_pair(one, subject) for subject in wide)
        yield from (pair for pair in made if pair is not None and pair.comparison == "values")


def outputs(pair: TestCase) -> list[Any] | None:
    """Both sides' outputs; None if one of them is refused, for which there are verdicts of their own."""
    try:
        return [run_side(side, pair) for side in sides_of(pair)]
    except Exception:  # noqa: BLE001 - whatever the library raises
        return None


@pytest.mark.parametrize("name", RULES)
def test_both_sides_agree_in_float64(name: str) -> None:
    bound = 1e-5 if name in NARROW else 1e-6
    compared = 0
    for pair in islice(drawn(rule.get(name)), DRAWN):
        found = outputs(pair)
        if found is None:
            continue
        left, right = found
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            np.testing.assert_allclose(other, one, rtol=bound, atol=bound, err_msg=str(pair.provenance))
        compared += 1
        if compared == PAIRS:
            return
    assert compared, "no pair of the rule could be compared"


@pytest.mark.parametrize("name", ["saved-export", "saved-script", "optimized-export", "optimized-script"])
def test_both_sides_agree_in_float64_after_capture(name: str) -> None:
    data = {"input": draws.uniform(Rng(0), (2, 3), "float64")}
    linear = draws.call_case("torch.nn.Linear", data, init={"in_features": 3, "out_features": 2})
    for subject in (linear, draws.call_case("torch.cumsum", data, {"dim": 1})):
        pair = pairs.make_pair(rule.get(name), subject)
        assert pair is not None
        [left], [right] = (run_side(side, pair) for side in sides_of(pair))
        np.testing.assert_allclose(right, left, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("api", ["torch.nn.GRU", "torch.nn.LSTM"])
def test_scanned_cells_are_the_layer(api: str) -> None:
    pair = pair_for("scan", api)
    assert pair is not None
    [left], [right] = (run_side(side, pair) for side in sides_of(pair))
    np.testing.assert_allclose(right, left, rtol=1e-6, atol=1e-6)
