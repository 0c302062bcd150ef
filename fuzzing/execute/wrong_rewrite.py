"""The rewrite that a compiler gets wrong, of a pair of models that are equal by several."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from fuzzing.cases import EquivalentModels, TestCase
from fuzzing.errors import CaseFormatError
from fuzzing.execute.ablation import is_same_failure
from fuzzing.outcomes import Outcome, Verdict


def find_wrong_rewrite(
    case: TestCase, failing: Outcome, run: Callable[[Sequence[TestCase]], Sequence[Outcome]]
) -> str:
    """The name of the last of the fewest first rewrites after which a pair fails as `failing` did.

    "" unless the right side alone has wrong outputs: a wrong left side fails whatever it is rewritten to, and
    an exception says itself what is wrong.

    run  runs pairs on the compiler that failed
    """
    mismatches = failing.evidence.mismatches
    wrong = failing.verdict is Verdict.WRONG_RESULT and all(one.judged == "right" for one in mismatches)
    steps = _steps(case) if wrong and isinstance(case.program, EquivalentModels) else None
    if steps is None:
        return ""
    left, done = steps
    shorter = [_models().pair_of(left, done[:count]) for count in range(1, len(done))]
    outcomes = run([pair for pair in shorter if pair is not None])
    found = iter(outcomes)
    for pair, step in zip(shorter, done, strict=False):
        if pair is not None and is_same_failure(next(found), failing):
            return str(step.rewrite)
    return str(done[-1].rewrite)


def _models() -> Any:
    # Found by name, as backends are: the control plane imports this package, and never onnx.
    return importlib.import_module("fuzzing.equivalence.graphs.models")


def _steps(case: TestCase) -> tuple[TestCase, list[Any]] | None:
    """The left model and the rewrites; None without any, or on a machine that cannot apply them."""
    try:
        left, done = _models().parts_of(case)
    except (ImportError, CaseFormatError):
        return None
    return (left, done) if done else None
