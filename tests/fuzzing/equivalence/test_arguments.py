"""What rules read of arguments holds by trial: where the API's own call runs, so does the other side."""

from __future__ import annotations

from typing import Any

import pytest

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import TestCase
from fuzzing.equivalence import pairs, rule
from fuzzing.generate.docter.trials import TrialPlan
from tests.fuzzing.equivalence.pair_helpers import sides_of

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of settings that cost time

#: Rules that pass arguments by what they read in documentation or in names.
RULES = ("out-argument", "in-place", "formula", "function-form")
DRAWS = TrialPlan(count=2, seed=0)


def raised(side: Any, case: TestCase) -> Exception | None:
    try:
        torch_programs.build(side).run(list(case.values()))
    except Exception as error:  # noqa: BLE001 - whatever the library raises
        return error
    return None


def refused(name: str, api: str) -> str | None:
    """What the other side raises of its arguments; "" if it runs, None if no draw of the API does."""
    for _, case in DRAWS.draw_calls(api):
        pair = pairs.make_pair(rule.get(name), case) if isinstance(case, TestCase) else None
        if pair is None:
            continue
        left, right = (raised(side, pair) for side in sides_of(pair))
        if left is None:
            return str(right) if isinstance(right, TypeError) else ""
    return None


@pytest.mark.parametrize("name", RULES)
def test_the_other_side_takes_the_arguments(name: str) -> None:
    found = {api: refused(name, api) for api in rule.get(name).apis()}
    assert sum(text is not None for text in found.values()) >= 0.8 * len(found), "too few draws run"
    assert not {api: text for api, text in found.items() if text}
