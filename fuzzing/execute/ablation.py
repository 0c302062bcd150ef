"""The ablation: which part of a compiler a failure belongs to.

A backend that can be taken apart lists its rungs, from the least of the compiler to all of it
(`Backend.ablation`). A case that failed is run on one rung after the other, each in a fresh process, until
one shows the failure: what that rung adds to the one before is the component to look at. This is how
PyTorch's own minifier and bisector tell dynamo from AOTAutograd from inductor (torch/_dynamo/repro,
torch/_inductor/compiler_bisector.py).

Nothing here starts a process: whoever climbs says how a rung is run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzzing.backends import Backend
from fuzzing.cases import TestCase
from fuzzing.errors import InternalError
from fuzzing.outcomes import Outcome, Verdict


@dataclass(frozen=True)
class AblationResult:
    """What a climb found.

    rungs      (options as "name=value …", verdict) of each rung that was run, least first
    component  what the first failing rung adds; "" if there is no ablation, or if no rung failed again
    """

    ablation_runs: tuple[tuple[str, str], ...] = ()
    component: str = ""


def run_ablation(
    case: TestCase, run: Callable[[dict[str, str]], Outcome], backend: type[Backend], failing: Outcome
) -> AblationResult:
    """Runs the rungs of `backend.ablation` until one fails as `failing` did.

    `run` runs `case` with the given options added to those it failed with, in a fresh process. The last
    rung, all of the compiler, is run too if none before it fails: a failure that does not come back is
    nobody's. Raises InternalError if `failing` accuses nobody; whatever `run` raises is passed on.
    """
    if not failing.verdict.is_failure:
        raise InternalError(f"nobody is to blame for case {case.id}: its verdict is {failing.verdict.value}")
    seen: list[tuple[str, str]] = []
    for level in backend.ablation:
        outcome = run(dict(level.options))
        seen.append((_text(level.options), outcome.verdict.value))
        if is_same_failure(outcome, failing):
            return AblationResult(tuple(seen), level.component)
    return AblationResult(tuple(seen))


def is_same_failure(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes of one case are the same kind of failure.

    The verdicts must agree; deaths must be of the same signal, or both an exception; wrong results must
    share a kind of difference. Exceptions are not compared further: each layer of a compiler wraps those
    of the layer below in its own class and text.
    """
    if one.verdict is not other.verdict:
        return False
    if one.verdict is Verdict.CRASH:
        return one.evidence.signal == other.evidence.signal
    if one.verdict is Verdict.WRONG_RESULT:
        return bool(_differences(one) & _differences(other))
    return True


def _differences(outcome: Outcome) -> set[str]:
    return {mismatch.kind for mismatch in outcome.evidence.mismatches}


def _text(options: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(options.items()))
