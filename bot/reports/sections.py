"""The four sections every report has (service-anchors: new here, already broken, fixed, not judged)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.reports import text
from bot.reports.picture import ORDER, name_of
from bot.reports.report import Group, Report
from bot.reports.reproducer import pip_line
from bot.store.models import Side, Standing


@dataclass(frozen=True)
class Section:
    """One of the four; `open` if people should see its first entry unfolded."""

    name: str
    title: str
    text: str
    groups: tuple[Group, ...]
    open: bool

    @property
    def count(self) -> int:
        """How many findings it holds."""
        return sum(group.cases for group in self.groups)


_SECTIONS = (
    (
        "new",
        "New here",
        (Standing.REGRESSION,),
        "Fails at head and passes at base, each time it was run. Only these speak against the change.",
    ),
    (
        "old",
        "Already broken at base",
        (Standing.ALREADY_BROKEN,),
        "Fails at head and at base: not the doing of this change.",
    ),
    ("fixed", "Fixed", (Standing.FIXED,), "Failed at base and passes at head."),
    (
        "unjudged",
        "Could not be judged",
        (Standing.FLAKY, Standing.UNJUDGED),
        "Did not repeat in fresh processes, or base is unknown. Nothing is claimed about these.",
    ),
)


def sections(report: Report) -> list[Section]:
    """The four sections, in order, the empty ones too."""
    return [
        Section(name, title, words, report.of(*standings), name == "new")
        for name, title, standings, words in _SECTIONS
    ]


def context(report: Report) -> dict[str, Any]:
    """What the templates of report and check run are filled with."""
    view = report.view
    at_head, at_base = report.verdicts(Side.HEAD), report.verdicts(Side.BASE)
    used = [verdict for verdict in ORDER if verdict in at_head or verdict in at_base]
    toolchains = [("head", view.head_toolchain), ("base", view.base_toolchain)]
    found = _found(report)
    return {
        "report": report,
        "sections": sections(report),
        "verdicts": [(name_of(v), at_head.get(v, 0), at_base.get(v, 0)) for v in used],
        "head": Side.HEAD,
        "base": Side.BASE,
        "found": found,
        "provenance": text.plain(found),
        "toolchains": [(name, toolchain) for name, toolchain in toolchains if toolchain is not None],
        "pip": pip_line,
        "name_of": name_of,
    }


def _found(report: Report) -> str:
    view = report.view
    tests = f"The cases are tests of {view.library}. " if view.library else ""
    return (
        f"{tests}What fails at head is run again in fresh processes, and given to base too. "
        f"Campaign {view.campaign}, seed {view.seed}."
    )
