"""What a regression test states: the case, the failure that it had, and the parts of its program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.errors import RefusalError
from bot.proposals.tolerances import power_of_ten
from bot.reports.bug_page import BugFacts
from bot.reports.campaign_view import ToolchainView
from bot.reports.reference_outputs import add_reference_outputs
from fuzzing.cases import TestCase
from fuzzing.cases.torch_call import TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.outcomes import Outcome, Verdict

#: Runs `python -m MODULE ARGS…` of the data plane and returns its events.
RunTool = Callable[[str, Sequence[str], Callable[[dict[str, Any]], None]], None]


#: Rtol and atol where no value was wrong: long sums of float32 are off by 3e-5 between two libraries (DFT of
#: 10 numbers around 500), and a test of a crash, a type or a shape need not find rounding.
LOOSE = 1e-3, 1e-5


@dataclass(frozen=True)
class Regression:
    """A case that failed, or adds to what is tested, and has to behave as the reference.

    outcome    how it failed, or that it passed
    toolchain  on which it did
    outline    the parts of an ONNX model (`fuzzing.triage.onnx_outline`), {} for other programs
    code       Python that builds an ONNX model (`fuzzing.triage.onnx_text`), "" for other programs
    issue      address of the bug's issue, "" without one
    """

    case: TestCase
    outcome: Outcome
    toolchain: ToolchainView
    outline: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    issue: str = ""

    @property
    def frontend(self) -> str:
        """The library whose program it is."""
        return self.case.program.frontend

    @property
    def symptom(self) -> str:
        """The failure as a word of a test's name: "compile", "dtype", "nan", "values", …; "" without one."""
        if self.outcome.verdict is Verdict.PASS:
            return ""
        if self.outcome.verdict is not Verdict.WRONG_RESULT:
            return self.outcome.phase.value
        mismatches = self.outcome.evidence.mismatches
        if not mismatches:
            return "values"
        first = mismatches[0]
        if first.kind == "value":
            return "nan" if "nan" in (first.got, first.want) else "values"
        return {"type": "dtype", "missing": "outputs"}.get(first.kind, first.kind)

    @property
    def tolerance(self) -> tuple[float, float]:
        """Rtol and atol that separate the failing output from the reference, powers of ten if those do."""
        for one in self.outcome.evidence.mismatches:
            if one.kind == "value":
                short = power_of_ten(one.rtol), power_of_ten(one.atol)
                fails = one.passes_at is None or one.passes_at > max(short)
                return short if fails else (one.rtol, one.atol)
        return LOOSE

    @property
    def has_wrong_values(self) -> bool:
        """Whether values are wrong, not types or shapes, so that a test needs a tolerance."""
        return any(one.kind == "value" for one in self.outcome.evidence.mismatches)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the program in order, in the library's spelling."""
        if self.outline:
            names = [str(one["name"]) for one in self.outline["operators"] if one["name"] != "Constant"]
            return tuple(dict.fromkeys(names))
        if isinstance(self.case.program, TorchCall):
            return (self.case.program.api,)
        return tuple(filter(None, [self.case.provenance.operator]))


def load_regression(facts: BugFacts, corpus: Path, run_tool: RunTool) -> Regression:
    """The regression that a bug's facts state. Raises RefusalError where the bug has no case any more."""
    if facts.case is None or facts.outcome is None or facts.toolchain is None:
        raise RefusalError(
            f"bug {facts.bug.id} has no failing program: its case or its outcomes were deleted; "
            "a new campaign that sees the bug stores them again"
        )
    text = read_outline(facts.case.id, corpus, run_tool)
    return load_program(facts.case, facts.outcome, facts.toolchain, corpus, text, _issue_url(facts))


def read_outline(case: str, corpus: Path, run_tool: RunTool) -> Mapping[str, Any]:
    """The event of `fuzzing.triage.program_text --outline` for a stored case, {} if it has none."""
    events: list[dict[str, Any]] = []
    run_tool("fuzzing.triage.program_text", ["--corpus", str(corpus), "--outline", case], events.append)
    return events[0] if events else {}


def load_program(
    case: TestCase,
    outcome: Outcome,
    toolchain: ToolchainView,
    corpus: Path,
    text: Mapping[str, Any],
    issue: str = "",
) -> Regression:
    """The regression of a stored case, with its event of `fuzzing.triage.program_text --outline`.

    Raises RefusalError for kinds of programs without a form of a test.
    """
    if not isinstance(case.program, (TorchCall, TorchProgram)) and case.program.frontend != "onnx":
        raise RefusalError(f"there is no form of a test for programs of kind {case.program.kind}")
    return Regression(
        add_reference_outputs(case, corpus),
        outcome,
        toolchain,
        outline=text.get("outline") or {},
        code=str(text.get("code", "")),
        issue=issue,
    )


def _issue_url(facts: BugFacts) -> str:
    return f"https://github.com/{facts.bug.target}/issues/{facts.bug.issue}" if facts.bug.issue else ""
