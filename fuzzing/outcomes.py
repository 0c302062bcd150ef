"""Outcomes: the result of one case on one toolchain and device."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from fuzzing.errors import InfrastructureError


class Phase(str, Enum):
    """The phases of a backend, in order."""

    IMPORT = "import"
    CONVERT = "convert"
    COMPILE = "compile"
    RUN = "run"


class Verdict(str, Enum):
    """An oracle's decision about the evidence."""

    PASS = "pass"
    CRASH = "crash"
    HANG = "hang"
    WRONG_RESULT = "wrong_result"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    OUT_OF_MEMORY = "out_of_memory"
    NONDETERMINISTIC = "nondeterministic"

    @property
    def is_failure(self) -> bool:
        """Whether this verdict, once repeated, is a compiler failure."""
        return self in _FAILURES


_FAILURES = frozenset({Verdict.CRASH, Verdict.HANG, Verdict.WRONG_RESULT, Verdict.OUT_OF_MEMORY})

#: Longest text kept of a message, a traceback or a log, in characters. syzbot keeps 16 KB of log inline; more
#: is of no use in a report.
MAX_TEXT = 16_000


@dataclass(frozen=True)
class Mismatch:
    """How one output differs from the reference.

    kind              "missing", "type", "shape" or "value"
    ratio             elements out of tolerance over all elements
    max_abs, max_rel  largest absolute and relative error; None where an infinity or NaN is involved
    worst             index of the worst element, with `got` and `want` there, as text
    rtol, atol        the bounds applied
    ulps              number of elements that are off by 0, 1, 2-3, 4-7, 8-15, … units in the last place of
                      the output's type, up to the farthest; NaN or infinity on one side only has a last bin
                      of its own
    passes_at         the smallest t for which rtol = atol = t would let this output pass; None if none would
    compiled_error, library_error  largest distance of the compiled program and of the library to a float64
                      run of the same program; None if there was no such run
    judged            of a pair, the side whose output `got` is, "left" or "right"; `want` and
                      `library_error` are the other's
    """

    output: str
    kind: str
    detail: str
    ratio: float = 1.0
    max_abs: float | None = None
    max_rel: float | None = None
    worst: tuple[int, ...] = ()
    got: str = ""
    want: str = ""
    rtol: float = 0.0
    atol: float = 0.0
    ulps: tuple[int, ...] = ()
    passes_at: float | None = None
    compiled_error: float | None = None
    library_error: float | None = None
    judged: str = ""

    @property
    def other(self) -> str:
        """The side of the pair that is not judged."""
        return {"left": "right", "right": "left"}.get(self.judged, "")


@dataclass(frozen=True)
class Evidence:
    """Evidence of one run. All of it comes from a compiler's process and is untrusted text.

    error          class of the exception, "" if none was raised
    message        its text, cut to MAX_TEXT
    traceback      Python frames of the compiler only, as "file:function", outermost first
    signal         name of the signal that killed the process, such as SIGSEGV
    native         faulthandler's stack of a native crash
    log            the end of what the process printed during the case
    mismatches     outputs that differ
    excused        outputs that differ and pass, since the reference does not decide there: rounding breaks
                   a tie, or the standard leaves the result open
    ablation_runs  (options, verdict) of the case at each ablation level that was run, least first
    component      the component that the first failing level adds; "" if there was no ablation
    rewrite        of a pair of models, the rewrite that made its right side wrong; "" if not looked for
    eagle          of a pair whose sides differ by the default bounds or by EAGLE's: the verdict of the latter
    """

    error: str = ""
    message: str = ""
    traceback: tuple[str, ...] = ()
    signal: str = ""
    native: str = ""
    log: str = ""
    mismatches: tuple[Mismatch, ...] = ()
    excused: tuple[Mismatch, ...] = ()
    ablation_runs: tuple[tuple[str, str], ...] = ()
    component: str = ""
    rewrite: str = ""
    eagle: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of one case on one toolchain and device.

    configuration  options and profile that differ from the defaults, as "optimization=disabled profile=isra"
    summary        one line for people
    durations      seconds spent in each phase entered
    peak_bytes     the largest resident set of the worker or one of its child processes during the case; 0 if
                   not sampled
    """

    case: str
    backend: str
    toolchain: str
    device: str
    verdict: Verdict
    phase: Phase
    summary: str
    durations: dict[str, float] = field(default_factory=dict)
    evidence: Evidence = Evidence()
    peak_bytes: int = 0
    configuration: str = ""

    def to_json(self) -> dict[str, Any]:
        """The inverse of `from_json`."""
        # Not by `asdict`, which copies every part: this runs for each case, and most have no evidence.
        evidence_fields = self.evidence
        evidence = {
            **vars(evidence_fields),
            "mismatches": tuple([asdict(item) for item in evidence_fields.mismatches]),
            "excused": tuple([asdict(item) for item in evidence_fields.excused]),
        }
        changed = {"verdict": self.verdict.value, "phase": self.phase.value, "evidence": evidence}
        return {**vars(self), "durations": dict(self.durations), **changed}

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Outcome:
        """The inverse of `to_json`. Raises InfrastructureError if a runner sent anything else."""
        try:
            fields = dict(obj)
            evidence = dict(fields.pop("evidence"))
            mismatches = tuple(_mismatch(item) for item in evidence.pop("mismatches"))
            excused = tuple(_mismatch(item) for item in evidence.pop("excused", ()))
            runs = evidence.pop("rungs", ())  # the key's name in files written by earlier releases
            runs = evidence.pop("ablation_runs", runs)
            ablation_runs = tuple((str(options), str(verdict)) for options, verdict in runs)
            trace = tuple(map(str, evidence.pop("traceback")))
            texts = {key: str(value)[:MAX_TEXT] for key, value in evidence.items()}
            return cls(
                evidence=Evidence(
                    mismatches=mismatches,
                    excused=excused,
                    traceback=trace,
                    ablation_runs=ablation_runs,
                    **texts,
                ),
                verdict=Verdict(fields.pop("verdict")),
                phase=Phase(fields.pop("phase")),
                **fields,
            )
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise InfrastructureError(f"the runner sent an invalid outcome: {error}") from None


def _mismatch(item: dict[str, Any]) -> Mismatch:
    lists: dict[str, Any] = {key: tuple(item[key]) for key in ("worst", "ulps") if key in item}
    return Mismatch(**(item | lists))
