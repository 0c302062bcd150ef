"""Ablation: finds the component of a compiler that causes a failure.

`Backend.ablation` lists levels from the least of the compiler to all of it. A failing case runs at one level
after another, each in a fresh process, until it fails; the component is what that level adds. PyTorch's
minifier and bisector separate dynamo, AOTAutograd and inductor in the same way (torch/_dynamo/repro,
torch/_inductor/compiler_bisector.py).
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
    """Result of an ablation.

    ablation_runs  (options as "name=value …", verdict) of each level that was run, least first
    component      what the first failing level adds; "" if there are no levels or none failed
    """

    ablation_runs: tuple[tuple[str, str], ...] = ()
    component: str = ""


def run_ablation(
    case: TestCase, run: Callable[[dict[str, str]], Outcome], backend: type[Backend], failing: Outcome
) -> AblationResult:
    """Runs the levels of `backend.ablation` until one fails as `failing` did.

    `run` runs `case` in a fresh process with the given options added to the failing ones. The last level is
    the whole compiler: a failure that does not recur there has no component. Raises InternalError if
    `failing` is not a failure, and the exceptions of `run`.
    """
    if not failing.verdict.is_failure:
        raise InternalError(
            f"cannot localize case {case.id}: its verdict is no failure but {failing.verdict.value}"
        )
    seen: list[tuple[str, str]] = []
    for level in backend.ablation:
        outcome = run(dict(level.options))
        seen.append((_text(level.options), outcome.verdict.value))
        if is_same_failure(outcome, failing):
            return AblationResult(tuple(seen), level.component)
    return AblationResult(tuple(seen))


def is_same_failure(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes of one case are the same kind of failure.

    The verdicts must agree; crashes must be of the same signal, or both exceptions; wrong results must share
    a kind of difference. Exceptions are not compared further: each layer of a compiler wraps those of the
    layer below in its own class and text.
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
