"""Runs the oracles of this package, one file each, in order of rank until one decides.

    rank  oracle         decides if
    10    invalid        the case has no reference: its own library could not run it
    20    hang           a phase was ended for its time
    30    out_of_memory  the process was ended for its memory, or its allocator failed
    40    unsupported    the exception is one by which the backend reports a missing feature
    50    crash          any other exception, signal or exit
    60    wrong_result   the outputs differ from the reference

If none decides the verdict is pass; outputs equal to the expected bytes pass without running any. Verdicts
that do not blame the compiler (invalid, unsupported) or name a cause (hang, out_of_memory) precede general
failures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Protocol

from fuzzing.cases import EquivalentPair, TestCase
from fuzzing.execution import Execution
from fuzzing.oracles.output_comparison import compare
from fuzzing.oracles.pair_sides import separate
from fuzzing.oracles.tolerance_profiles import DEFAULT
from fuzzing.outcomes import MAX_TEXT, Evidence, Mismatch, Outcome, Verdict
from fuzzing.registry import Registry

MAX_SUMMARY = 200  # characters; one line of a terminal or a table

_PHASE_WORDS = {
    "import": "while the compiler was imported",
    "convert": "in conversion",
    "compile": "in compilation",
    "run": "in execution",
}


class BackendInfo(Protocol):
    """The facts about a backend that oracles need.

    unsupported  (class regex, message regex, why): exceptions that only report a missing feature; searched
                 for in the exception's class name and its text
    """

    @property
    def name(self) -> str:
        """The backend's name."""
        ...

    @property
    def unsupported(self) -> tuple[tuple[str, str, str], ...]:
        """See the class docstring."""
        ...


@dataclass(frozen=True)
class OracleInput:
    """The evidence that an oracle decides on.

    computed_in  see `fuzzing.backends.base.Backend`
    """

    case: TestCase
    execution: Execution
    backend: BackendInfo
    profile: str
    computed_in: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The last phase, for people: "in compilation"."""
        return _PHASE_WORDS[self.execution.phase.value]


@dataclass(frozen=True)
class Decision:
    """An oracle's verdict; `summary` is one line for people, `excused` as in `Evidence`."""

    verdict: Verdict
    summary: str
    mismatches: tuple[Mismatch, ...] = ()
    excused: tuple[Mismatch, ...] = ()


def decide_wrong_result(mismatches: tuple[Mismatch, ...]) -> Decision:
    """The decision that at least one output is wrong."""
    first = mismatches[0]
    whose = f" of the {first.judged} program" if first.judged else ""
    count = "" if len(mismatches) == 1 else f" (and {len(mismatches) - 1} more)"
    return Decision(Verdict.WRONG_RESULT, f"output {first.output}{whose}: {first.detail}{count}", mismatches)


def name_sides(decision: Decision, judged: str) -> Decision:
    """A decision on a pair, whose side `judged` was compared with the other, in words that name both."""
    if decision.verdict is not Verdict.WRONG_RESULT:
        return decision
    named = (replace(item, judged=judged) for item in decision.mismatches)
    return decide_wrong_result(
        tuple(
            replace(item, detail=item.detail.replace("the library", f"the {item.other} program"))
            for item in named
        )
    )


Oracle = Callable[[OracleInput], "Decision | None"]

_ORACLES: Registry[tuple[int, Oracle]] = Registry("oracle", "fuzzing.oracles")


def register_oracle(rank: int) -> Callable[[Oracle], Oracle]:
    """Decorator: registers a function, under its name, at its rank."""

    def register(function: Oracle) -> Oracle:
        _ORACLES.add((rank, function), function.__name__)
        return function

    return register


@cache
def oracles() -> tuple[Oracle, ...]:
    """All oracles of this package, by rank."""
    ranked = dict(map(_ORACLES.get, _ORACLES.names()))
    assert len(ranked) == len(_ORACLES.names()), "two oracles have one rank"
    return tuple(function for _, function in sorted(ranked.items()))


def decide_outcome(
    case: TestCase,
    execution: Execution,
    backend: BackendInfo,
    toolchain: str,
    device: str,
    profile: str = "default",
    *,
    configuration: str = "",
    case_id: str = "",
    computed_in: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """The outcome of `execution`. The case must have its reference, see `fuzzing.oracles.reference`.

    `case_id` is the id in the outcome, by default the case's own, whose computation it avoids. Raises
    UnknownNameError for an unknown tolerance profile.
    """
    case_id = case_id or case.id
    paired = isinstance(case.program, EquivalentPair) and execution.ending == "returned"
    case, execution = separate(case, execution)
    if execution.matches_expected:
        decision = _decide_pass(execution.count)
    else:
        decision = _decide(OracleInput(case, execution, backend, profile, computed_in))
        decision = name_sides(decision, "right") if paired else decision
    evidence = _evidence(execution, decision.mismatches)
    if paired and profile == DEFAULT and (verdict := _eagle_verdict(case, execution, decision)):
        evidence = replace(evidence, eagle=verdict.value)
    return Outcome(
        case=case_id,
        backend=backend.name,
        toolchain=toolchain,
        device=device,
        verdict=decision.verdict,
        phase=execution.phase,
        summary=one_line(decision.summary),
        durations=dict(execution.durations),
        evidence=evidence,
        peak_bytes=execution.peak_bytes,
        configuration=configuration,
    )


def _decide(oracle_input: OracleInput) -> Decision:
    for oracle in oracles():
        if (decision := oracle(oracle_input)) is not None:
            return decision
    return _decide_pass(oracle_input.execution.count)


def _eagle_verdict(case: TestCase, execution: Execution, decision: Decision) -> Verdict | None:
    """The verdict of EAGLE's bounds on a pair; None if neither they nor the decision tell the sides apart."""
    differing = compare(case.expected or (), execution.outputs, comparison=case.comparison, profile="eagle")
    if not differing and not decision.mismatches:
        return None
    return Verdict.WRONG_RESULT if differing else Verdict.PASS


def with_decision(outcome: Outcome, decision: Decision) -> Outcome:
    """The outcome with another decision."""
    return replace(
        outcome,
        verdict=decision.verdict,
        summary=one_line(decision.summary),
        evidence=replace(outcome.evidence, mismatches=decision.mismatches, excused=decision.excused),
    )


@lru_cache
def _decide_pass(count: int) -> Decision:
    return Decision(Verdict.PASS, f"{count} output{'' if count == 1 else 's'} as expected")


_EMPTY_EVIDENCE = Evidence()


def _evidence(execution: Execution, mismatches: tuple[Mismatch, ...]) -> Evidence:
    """The evidence of an execution. Messages are cut at their end, logs at their beginning."""
    if execution.ending == "returned" and not (mismatches or execution.log):
        return _EMPTY_EVIDENCE  # of which a campaign has thousands
    return Evidence(
        error=execution.error[:MAX_TEXT],
        message=execution.message[:MAX_TEXT],
        traceback=execution.traceback,
        signal=execution.signal,
        native=execution.native[:MAX_TEXT],
        log=execution.log[-MAX_TEXT:],
        mismatches=mismatches,
    )


def one_line(text: str) -> str:
    """The text as a summary."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SUMMARY else line[: MAX_SUMMARY - 1] + "…"
