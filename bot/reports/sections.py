"""The sections every report has: new here, already broken, no longer supported, fixed, not judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from bot.reports import text
from bot.reports.picture import ORDER, name_of
from bot.reports.planning import order_of, source_rows
from bot.reports.report import Group, Report
from bot.reports.reproducer import pip_line
from bot.reports.templating import counted, seconds, thousands
from bot.reports.view import CampaignView
from bot.store.models import Side, Standing


@dataclass(frozen=True)
class Section:
    """One of them; `open` if people should see its first entry unfolded."""

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
    (
        "support_lost",
        "No longer supported",
        (Standing.SUPPORT_LOST,),
        "Passes at base; head refuses it as unsupported. Told here and never filed as a bug.",
    ),
    ("fixed", "Fixed", (Standing.FIXED,), "Failed at base and passes at head."),
    (
        "unjudged",
        "Could not be judged",
        (Standing.FLAKY, Standing.FLAKY_PROGRAM, Standing.INFRASTRUCTURE, Standing.UNJUDGED),
        "Did not repeat in fresh processes, was the machine's doing, or has no base to be compared with. "
        "Nothing is claimed about these.",
    ),
)


#: Where head is compared with nothing, a failure is just that.
_ALONE = (
    ("failing", "Failing", (Standing.UNJUDGED,), "Fails here, in every fresh process; nothing was compared."),
    (
        "flaky",
        "Did not repeat",
        (Standing.FLAKY, Standing.FLAKY_PROGRAM, Standing.INFRASTRUCTURE),
        "Failed once, and not in every fresh process.",
    ),
)


#: What a section is called on a pull request, where it says more there.
_PULL_TITLES = {"fixed": "Fixed by this pull request"}
#: Sections that are told of only where there is something in them.
_RARE = frozenset({"support_lost", "muted"})


def sections(report: Report, muted: Sequence[str] = (), pull: int | None = None) -> list[Section]:
    """The sections, in order, the empty ones too, but those that are rare.

    muted  globs over operators that maintainers do not want to hear of
    """
    made = [
        Section(name, title, words, report.of(*standings), name in ("new", "failing"))
        for name, title, standings, words in (_SECTIONS if report.view.base else _ALONE)
    ]
    if muted:
        made = list(_apart(made, muted))
    if pull is not None:
        made = [replace(section, title=_PULL_TITLES.get(section.name, section.title)) for section in made]
    return [section for section in made if section.groups or section.name not in _RARE]


def accused(report: Report, muted: Sequence[str] = ()) -> list[Group]:
    """The regressions that speak against the change: those of operators nobody has muted."""
    return [group for group in report.of(Standing.REGRESSION) if not is_muted(group, muted)]


def is_muted(group: Group, muted: Sequence[str]) -> bool:
    """Whether the operator of a group is one that maintainers do not want to hear of."""
    operator = group.example.operator
    return bool(operator) and any(fnmatchcase(operator, glob) for glob in muted)


def _apart(made: Sequence[Section], muted: Sequence[str]) -> Iterator[Section]:
    """The sections, what is muted taken out of what is new."""
    for section in made:
        if section.name != "new":
            yield section
            continue
        silent = tuple(group for group in section.groups if is_muted(group, muted))
        yield replace(section, groups=tuple(group for group in section.groups if group not in silent))
        words = "New here too, of operators that a maintainer has muted: told here and nowhere else."
        yield Section("muted", "Muted", words, silent, False)


def context(report: Report, muted: Sequence[str] = (), pull: int | None = None) -> dict[str, Any]:
    """What the templates of report and check run are filled with."""
    view = report.view
    at_head, at_base = report.verdicts(Side.HEAD), report.verdicts(Side.BASE)
    used = [verdict for verdict in ORDER if verdict in at_head or verdict in at_base]
    toolchains = [("head", view.head_toolchain), ("base", view.base_toolchain)]
    found = _found(report)
    return {
        "report": report,
        "sections": sections(report, muted, pull),
        "verdicts": [(name_of(v), at_head.get(v, 0), at_base.get(v, 0)) for v in used],
        "head": Side.HEAD,
        "base": Side.BASE,
        "found": found,
        "provenance": text.plain(found),
        "toolchains": [(name, toolchain) for name, toolchain in toolchains if toolchain is not None],
        "pip": pip_line,
        "speed": _speed(view),
        "sources": source_rows(view.sources),
        "name_of": name_of,
    }


def _speed(view: CampaignView) -> list[tuple[str, str]]:
    """What the run at head cost, in a few figures; [] where nothing was run."""
    work, cached = view.work.get("running"), view.cached.get(Side.HEAD, 0)
    rows = [("verdicts from the cache", thousands(cached))] if cached else []
    if work is None or not work.runs:
        return rows
    rows.append(("cases run", thousands(work.runs)))
    if work.rate is not None:
        rows.append(("cases a second", f"{work.rate:.3g}"))
    if work.overhead is not None:
        rows.append((f"wall time of {counted(work.workers, 'worker')} over work", f"{work.overhead:.2f}"))
    return [*rows, *((f"in {phase}", seconds(spent)) for phase, spent in work.phases.items())]


def _found(report: Report) -> str:
    view = report.view
    tests = f"The cases are tests of {view.library}. " if view.library else ""
    order = order_of(view.ranking)
    told = (
        "What head fails, base was given too; what base passes was repeated in fresh processes, on "
        f"both sides. Campaign {view.campaign}, seed {view.seed}."
    )
    return f"{tests}{order}{' ' * bool(order)}{told}"
