"""Rungs: one campaign after another on ever more of the compiler, each on what passed the one before.

A rung is a set of the backend's options (`Backend.rungs`). Cheap rungs screen many cases; the whole compiler
runs those that are left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.errors import UsageError
from fuzzing import backends
from fuzzing.registry import did_you_mean


@dataclass(frozen=True)
class RungResult:
    """The campaign of one rung.

    result  its report.json
    passed  the cases that passed, in rank order
    """

    name: str
    result: dict[str, Any]
    passed: Sequence[str]


#: Runs a campaign: (rung, options, seconds, cases or None for those of the sources).
RunCampaign = Callable[[str, dict[str, str], float, Sequence[str] | None], RungResult]


def parse_rungs(backend: str, text: str) -> tuple[str, ...]:
    """The rungs that a comma-separated list names, cheapest first; raises UsageError."""
    known = backends.get(backend).rungs
    if not known:
        raise UsageError(f"--rungs: {backend} has no rungs; leave it out")
    given = [name.strip() for name in text.split(",") if name.strip()]
    for name in given:
        if name not in known:
            raise UsageError(
                f"--rungs {name}: {did_you_mean(name, known)}{backend} has the rungs {', '.join(known)}"
            )
    if not given:
        raise UsageError(f"--rungs: name some of {', '.join(known)}")
    return tuple(name for name in known if name in given)


def run_rungs(
    backend: str,
    rungs: Sequence[str],
    options: dict[str, str],
    seconds: float,
    run: RunCampaign,
    interrupted: Callable[[], bool] = lambda: False,
) -> list[RungResult]:
    """The result of each rung; ends early where no case passes, or if it is interrupted.

    Each rung gets an equal share of what is left of the budget, so that a rung that ends early leaves more to
    the next.
    """
    begin, done = time.monotonic(), list[RungResult]()
    cases: Sequence[str] | None = None
    for place, name in enumerate(rungs):
        left = seconds - (time.monotonic() - begin)
        share = max(1.0, left / (len(rungs) - place))
        done.append(run(name, options | backends.get(backend).rungs[name], share, cases))
        cases = done[-1].passed
        if not cases or interrupted():
            break
    return done
