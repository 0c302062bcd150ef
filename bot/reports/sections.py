"""The sections of a report: new, changed, already broken, no longer supported, fixed, inconclusive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from bot.reports import text
from bot.reports.campaign_view import CampaignView
from bot.reports.plan_summary import describe_ranking, source_rows
from bot.reports.report import Group, Report
from bot.reports.reproducer import pip_command
from bot.reports.templates import pluralize, seconds, thousands
from bot.reports.verdict_chart import VERDICT_ORDER, verdict_name
from bot.store.models import Classification, Side


@dataclass(frozen=True)
class Section:
    """One section; `open` shows its first entry unfolded."""

    name: str
    title: str
    text: str
    groups: tuple[Group, ...]
    open: bool

    @property
    def count(self) -> int:
        """The number of its findings."""
        return sum(group.cases for group in self.groups)


_SECTIONS = (
    (
        "new",
        "New here",
        (Classification.REGRESSION,),
        "Fails at head and passes at base in every run. Only these count against the change.",
    ),
    (
        "changed",
        "Changed",
        (Classification.CHANGED,),
        "Fails at both in different ways, or passes at both and equals the reference only at base. "
        "Repeated in fresh processes. No issue is filed.",
    ),
    (
        "old",
        "Already broken at base",
        (Classification.ALREADY_BROKEN,),
        "Fails at head and at base; not caused by this change.",
    ),
    (
        "support_lost",
        "No longer supported",
        (Classification.SUPPORT_LOST,),
        "Passes at base; unsupported at head. Never filed as a bug.",
    ),
    ("fixed", "Fixed", (Classification.FIXED,), "Failed at base and passes at head."),
    (
        "inconclusive",
        "Inconclusive",
        (
            Classification.FLAKY,
            Classification.FLAKY_PROGRAM,
            Classification.INFRASTRUCTURE,
            Classification.INCONCLUSIVE,
        ),
        "Did not repeat in fresh processes, failed because of infrastructure, or has no base to compare "
        "with. Not attributed to the change.",
    ),
)


#: Sections of a campaign without a base.
_SECTIONS_WITHOUT_BASE = (
    (
        "failing",
        "Failing",
        (Classification.INCONCLUSIVE,),
        "Fails in each of its runs; there is no base to compare with.",
    ),
    (
        "unrepeated",
        "Not repeated",
        (),
        "Failed once; the budget ended before it was repeated in fresh processes. The next run continues.",
    ),
    (
        "flaky",
        "Did not repeat",
        (Classification.FLAKY, Classification.FLAKY_PROGRAM, Classification.INFRASTRUCTURE),
        "Failed at least once, but not in every fresh process.",
    ),
)


#: Titles that differ on a pull request.
_PULL_TITLES = {"fixed": "Fixed by this pull request"}
#: Sections that are left out if empty.
_OPTIONAL = frozenset({"changed", "support_lost", "muted", "unrepeated"})


def sections(report: Report, muted: Sequence[str] = (), pull: int | None = None) -> list[Section]:
    """The sections in order, with empty ones unless they are optional; `muted` are globs of operators."""
    made = [
        Section(name, title, words, report.with_classification(*standings), name in ("new", "failing"))
        for name, title, standings, words in (_SECTIONS if report.view.base else _SECTIONS_WITHOUT_BASE)
    ]
    made = list(_split_unrepeated(made))
    if muted:
        made = list(_split_muted(made, muted))
    if pull is not None:
        made = [replace(section, title=_PULL_TITLES.get(section.name, section.title)) for section in made]
    return [section for section in made if section.groups or section.name not in _OPTIONAL]


def unmuted_regressions(report: Report, muted: Sequence[str] = ()) -> list[Group]:
    """The regressions of operators that are not muted."""
    return [
        group for group in report.with_classification(Classification.REGRESSION) if not is_muted(group, muted)
    ]


def is_muted(group: Group, muted: Sequence[str]) -> bool:
    """Whether the operator of a group is muted."""
    operator = group.example.operator
    return bool(operator) and any(fnmatchcase(operator, glob) for glob in muted)


def _split_unrepeated(made: Sequence[Section]) -> Iterator[Section]:
    """Moves groups that ran once from the failing ones to those not repeated."""
    once = tuple(group for one in made if one.name == "failing" for group in one.groups if not group.repeated)
    for one in made:
        if one.name == "failing":
            yield replace(one, groups=tuple(group for group in one.groups if group.repeated))
        elif one.name == "unrepeated":
            yield replace(one, groups=once)
        else:
            yield one


def _split_muted(made: Sequence[Section], muted: Sequence[str]) -> Iterator[Section]:
    """Moves muted groups from the section of new failures to one of their own."""
    for section in made:
        if section.name != "new":
            yield section
            continue
        muted_groups = tuple(group for group in section.groups if is_muted(group, muted))
        yield replace(section, groups=tuple(group for group in section.groups if group not in muted_groups))
        words = "New failures of operators that a maintainer has muted; shown only here."
        yield Section("muted", "Muted", words, muted_groups, False)


def context(report: Report, muted: Sequence[str] = (), pull: int | None = None) -> dict[str, Any]:
    """Values for the templates of report and check run."""
    view = report.view
    at_head, at_base = report.verdicts(Side.HEAD), report.verdicts(Side.BASE)
    used = [verdict for verdict in VERDICT_ORDER if verdict in at_head or verdict in at_base]
    toolchains = [("head", view.head_toolchain), ("base", view.base_toolchain)]
    found = _describe_method(report)
    return {
        "report": report,
        "sections": sections(report, muted, pull),
        "verdicts": [(verdict_name(v), at_head.get(v, 0), at_base.get(v, 0)) for v in used],
        "head": Side.HEAD,
        "base": Side.BASE,
        "found": found,
        "provenance": text.plain(found),
        "toolchains": [(name, toolchain) for name, toolchain in toolchains if toolchain is not None],
        "pip": pip_command,
        "speed": _speed(view),
        "sources": source_rows(view.sources),
        "verdict_name": verdict_name,
    }


def _speed(view: CampaignView) -> list[tuple[str, str]]:
    """Costs of the run at head; [] if nothing ran."""
    costs, cached = view.costs.get("running"), view.cached.get(Side.HEAD, 0)
    rows = [("verdicts from the cache", thousands(cached))] if cached else []
    if costs is None or not costs.runs:
        return rows
    rows.append(("cases run", thousands(costs.runs)))
    if costs.rate is not None:
        rows.append(("cases a second", f"{costs.rate:.3g}"))
    if costs.overhead is not None:
        rows.append(
            (
                f"overhead of {pluralize(costs.workers, 'worker')} (wall time / compiler time)",
                f"{costs.overhead:.2f}",
            )
        )
    return [*rows, *((f"in {phase}", seconds(spent)) for phase, spent in costs.phases.items())]


def _describe_method(report: Report) -> str:
    view = report.view
    tests = f"The cases come from tests of {view.library}. " if view.library else ""
    order = describe_ranking(view.ranking)
    method = (
        "Each case that fails at head was run at base; each that passes at base was repeated in fresh "
        "processes on both sides."
        if view.base
        else "Failures were repeated in fresh processes within the budget, one of each signature first; "
        "others of a signature that repeated count once if the budget ended before."
    )
    return f"{tests}{order}{' ' * bool(order)}{method} Campaign {view.campaign}, seed {view.seed}."
