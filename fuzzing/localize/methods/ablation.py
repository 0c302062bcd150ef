"""The first level of the backend's ablation that fails."""

from __future__ import annotations

from fuzzing.execute.ablation import run_ablation
from fuzzing.localize.facts import Fact
from fuzzing.localize.failing_case import FailingCase
from fuzzing.localize.methods.base import register_method


@register_method("ablation")
def ablation(failure: FailingCase) -> Fact | None:
    """The component that the first failing level adds; see `fuzzing.execute.ablation`."""
    if not failure.backend.ablation:
        return None
    before = failure.runs
    ablation = run_ablation(failure.case, failure.run_with_options, failure.backend, failure.outcome)
    ablation_runs = "; ".join(f"{options}: {verdict}" for options, verdict in ablation.ablation_runs)
    found = (ablation.component,) if ablation.component else ()
    return Fact(
        "ablation",
        found,
        f"run with more and more of the compiler: {ablation_runs}",
        failure.runs - before,
        True,
    )
