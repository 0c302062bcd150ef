"""From a campaign's view to its report: findings grouped by signature, each group with its evidence."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.campaigns.report.summary import NO_TEXT, ProgramText
from bot.reports import reproducer
from bot.reports.campaign_view import CampaignView, FindingView, Tally, ToolchainView
from bot.reports.reproducer_short import render_short
from bot.store.models import Classification, Side
from fuzzing.cases import Provenance, TestCase
from fuzzing.outcomes import Verdict

#: Findings of one group that are listed by name; the others are counted.
MAX_LISTED_CASES = 200
#: Standings whose example gets a reproducer: a flaky one would disappoint, a fixed one has nothing to show.
WITH_REPRODUCER = frozenset(
    {Classification.REGRESSION, Classification.ALREADY_BROKEN, Classification.INCONCLUSIVE}
)

#: Standings of which nothing is claimed, neither that head is at fault nor that it is not.
UNDECIDED = (
    Classification.FLAKY,
    Classification.FLAKY_PROGRAM,
    Classification.INFRASTRUCTURE,
    Classification.INCONCLUSIVE,
)
#: The exit code of a reproducer that shows its bug.
BUG_SHOWN = 1

#: Licences of the libraries whose tests we migrate, as their own packages state them.
LICENSES: Mapping[str, str] = {"onnx": "Apache-2.0", "torch": "BSD-3-Clause", "keras": "Apache-2.0"}


@dataclass(frozen=True)
class CaseRow:
    """One finding in a list."""

    case: str
    test: str
    operator: str
    head_runs: Tally
    base_runs: Tally
    reason: str
    size: int


@dataclass(frozen=True)
class Group:
    """The findings of one classification that share a signature: one bug, as far as we can tell.

    cases     how many findings there are, `found_by_reduction` of them with cases that were not planned
    shown     up to SHOWN of them, the smallest first
    example   the finding whose program is the smallest, as its reduced case shows it if it has one
    found     the case of the example as it was found; its id is the example's where it was not reduced
    history   how the one became the other, in a line; "" where it was not reduced
    program   its model as text, "" if it could not be had
    script    its reproducer: the short one, else the guarded one; "" for standings that get none and where
              there is no template
    guarded   the script with limits and exit codes beside a short one, "" where `script` is that itself
    replay_instructions  how to replay it with Assay, where there is no script; `filename` names either
    tried     the exit code of the guarded script at head, None if it was not run; only 1 is offered
    replay    the command that runs the case again, "" without an outcome at head
    kept      the case's files by name, where a page needs them
    origin    where its case came from, None if the case could not be read
    frontend  what loads its program: onnx, torch, keras
    """

    signature: str
    title: str
    classification: Classification
    cases: int
    shown: tuple[CaseRow, ...]
    example: FindingView
    original_case: str = ""
    found_by_reduction: int = 0
    history: str = ""
    program: str = ""
    script: str = ""
    guarded: str = ""
    replay_instructions: str = ""
    tried: int | None = None
    replay: str = ""
    kept: Mapping[str, bytes] = field(default_factory=dict)
    origin: Provenance | None = None
    frontend: str = "onnx"

    @property
    def filename(self) -> str:
        """The reproducer's file name, or the page's; one signature may show both new and old failures."""
        return f"{self._stem}.{'txt' if self.replay_instructions else 'py'}"

    @property
    def guarded_filename(self) -> str:
        """The file name of the guarded script beside a short one."""
        return f"{self._stem}.guarded.py"

    @property
    def folder(self) -> str:
        """The folder, beside the page, in which the case is kept."""
        return f"{self._stem}-case"

    @property
    def _stem(self) -> str:
        return f"{self.signature}{'' if self.classification is Classification.REGRESSION else '-' + self.classification.value}"

    @property
    def license_name(self) -> str:
        """The licence of the test the example descends from, "" if we do not know it."""
        return LICENSES.get(self.origin.library, "") if self.origin else ""


@dataclass(frozen=True)
class OperatorRow:
    """The counts of one operator: verdict → cases, on both sides, and findings by classification."""

    operator: str
    head: Mapping[Verdict, int]
    base: Mapping[Verdict, int]
    standings: Mapping[Classification, int]


@dataclass(frozen=True)
class Report:
    """What a campaign found, in the order people want to read it."""

    view: CampaignView
    groups: tuple[Group, ...]
    operators: tuple[OperatorRow, ...]

    def with_classification(self, *standings: Classification) -> tuple[Group, ...]:
        """The groups of these standings, the largest first."""
        return tuple(group for group in self.groups if group.classification in standings)

    def cases(self, *standings: Classification) -> int:
        """How many planned cases became findings of one of these standings."""
        return sum(group.cases - group.found_by_reduction for group in self.with_classification(*standings))

    def verdicts(self, side: Side) -> dict[Verdict, int]:
        """Cases by verdict on one side, in the order of `Verdict`."""
        total: Counter[Verdict] = Counter()
        for count in self.view.counts:
            if count.side is side:
                total[count.verdict] += count.cases
        return {verdict: total[verdict] for verdict in Verdict if total[verdict]}

    def cases_run(self, side: Side = Side.HEAD) -> int:
        """How many cases have an outcome on that side."""
        return sum(self.verdicts(side).values())

    @property
    def not_run(self) -> int:
        """Planned cases without an outcome at head."""
        return max(0, self.view.planned - self.cases_run())

    @property
    def headline(self) -> str:
        """The report in one line, for a check run's title."""
        return self.headline_for(self.with_classification(Classification.REGRESSION))

    def headline_for(self, new: Sequence[Group]) -> str:
        """The same where only these groups are news: as many bugs as groups, as many cases as are in them."""
        bugs = f"{len(new)} new bug{'' if len(new) == 1 else 's'}"
        found_by_reduction = sum(
            group.found_by_reduction for group in new
        )  # while other cases were made small: none of those that ran
        cases = sum(group.cases for group in new) - found_by_reduction
        ran = f"{self.cases_run():,} case{'' if self.cases_run() == 1 else 's'}"
        if cases:
            more = f"; {found_by_reduction} more met while they were made small" if found_by_reduction else ""
            return f"{bugs}: {cases} of {ran} fail{'s' * (cases == 1)} here and passed at base{more}"
        if not self.cases_run():
            return "No case was run"
        if found_by_reduction:
            return f"{bugs}, met while other cases were made small; {ran} ran"
        failing = self.with_classification(Classification.INCONCLUSIVE)
        if not self.view.base and failing:
            kinds = f"{len(failing)} kind{'' if len(failing) == 1 else 's'} of failure"
            return f"{kinds}: {self.cases(Classification.INCONCLUSIVE)} of {ran} fail"
        old = self.cases(Classification.ALREADY_BROKEN)
        open_ = self.cases(*UNDECIDED)
        if not self.view.base and not old and not open_:
            return f"Nothing fails in {ran}"
        rest = [f"{old} already broken at base"] * bool(old) + [f"{open_} not judged"] * bool(open_)
        return f"Nothing new in {ran}" + (f"; {', '.join(rest)}" if rest else "")


DescribePrograms = Callable[[Collection[str]], Mapping[str, ProgramText]]


def build_report(
    view: CampaignView,
    find_case: Callable[[str], TestCase] | None = None,
    describe: DescribePrograms = lambda _: {},
    complete: Callable[[TestCase], TestCase] = lambda case: case,
) -> Report:
    """The report of a campaign that has ended.

    find_case  reads a case by its id (`Corpus.get`); without it there are no reproducers
    describe   case ids → programs as text; called once, with the ids of all examples
    complete   a case with the outputs it must give, where it ships none and they are known
    """
    builders: dict[tuple[Classification, str], _GroupBuilder] = {}
    standings: dict[str, Counter[Classification]] = {}
    for finding in view.findings:
        builders.setdefault((finding.classification, finding.signature), _GroupBuilder(finding)).add(finding)
        standings.setdefault(finding.operator, Counter())[finding.classification] += 1
    order = list(Classification)
    groups = sorted(
        (builder.group(view.tried) for builder in builders.values()),
        key=lambda group: (order.index(group.classification), -group.cases, group.title, group.signature),
    )
    programs = describe([group.example.case for group in groups]) if groups else {}
    view = replace(view, findings=())
    full = tuple(_with_evidence(group, view, find_case, programs, complete) for group in groups)
    return Report(view, full, _operators(view, standings))


class _GroupBuilder:
    """A group while findings stream by: a count, the smallest example, the smallest rows."""

    def __init__(self, first: FindingView) -> None:
        self.example, self.cases, self.found_by_reduction = first, 0, 0
        self.rows: list[CaseRow] = []

    def add(self, finding: FindingView) -> None:
        self.cases += 1
        self.found_by_reduction += finding.found_by_reduction
        if _example_sort_key(finding) < _example_sort_key(self.example):
            self.example = finding
        self.rows.append(
            CaseRow(
                finding.case,
                finding.test,
                finding.operator,
                finding.head_runs,
                finding.base_runs,
                finding.reason,
                finding.size,
            )
        )
        if len(self.rows) >= 2 * MAX_LISTED_CASES:
            self._trim()

    def _trim(self) -> None:
        self.rows = sorted(self.rows, key=lambda row: (row.size, row.test, row.case))[:MAX_LISTED_CASES]

    def group(self, tried: Mapping[str, int]) -> Group:
        """The group; what was reduced is shown unless its script was tried and did not show the bug."""
        self._trim()
        of = self.example
        smallest = of.smallest if tried.get(of.smallest.case, BUG_SHOWN) == BUG_SHOWN else of
        history = of.reduced.history if of.reduced and smallest is not of else ""
        return Group(
            of.signature,
            of.title,
            of.classification,
            self.cases,
            tuple(self.rows),
            smallest,
            original_case=of.case,
            found_by_reduction=self.found_by_reduction,
            history=history,
        )


def _example_sort_key(finding: FindingView) -> tuple[bool, int, str, str]:
    """What was reduced first, then what is small."""
    smallest = finding.smallest
    return finding.reduced is None, smallest.size, finding.test, finding.case


def _with_evidence(
    group: Group,
    view: CampaignView,
    find_case: Callable[[str], TestCase] | None,
    programs: Mapping[str, ProgramText],
    complete: Callable[[TestCase], TestCase],
) -> Group:
    program = programs.get(group.example.case, NO_TEXT)
    if find_case is None:
        return replace(group, program=program.shown)
    case = find_case(group.example.case)
    frontend = case.program.frontend
    described = replace(group, program=program.shown, origin=case.provenance, frontend=frontend)
    outcome, toolchain = group.example.head, view.head_toolchain
    if outcome is None or toolchain is None:
        return described
    tried = view.tried.get(case.id)
    described = replace(described, replay=reproducer.replay_command(outcome, case.id[:16]), tried=tried)
    if group.classification not in WITH_REPRODUCER or not outcome.verdict.is_failure:
        return described
    if reproducer.has_template(outcome.backend, frontend) and tried in (None, BUG_SHOWN):
        case = complete(case)
        short = render_short(case, outcome, toolchain, program.code)
        return _add_scripts(described, case, toolchain, "" if case.id in view.short_failed else short)
    instructions = reproducer.render_replay_instructions(case, outcome, toolchain, group.folder)
    return replace(described, replay_instructions=instructions, kept=case.files())


def _add_scripts(group: Group, case: TestCase, toolchain: ToolchainView, short: str) -> Group:
    """The group with its short script and the guarded one, or the guarded one alone."""
    assert group.example.head is not None
    filename = group.guarded_filename if short else group.filename
    guarded = reproducer.render(case, group.example.head, toolchain, filename=filename)
    return replace(group, script=short, guarded=guarded) if short else replace(group, script=guarded)


def _operators(
    view: CampaignView, standings: Mapping[str, Counter[Classification]]
) -> tuple[OperatorRow, ...]:
    """One row for each operator, the most interesting first."""
    sides: dict[Side, dict[str, Counter[Verdict]]] = {Side.HEAD: {}, Side.BASE: {}}
    for count in view.counts:
        sides[count.side].setdefault(count.operator, Counter())[count.verdict] += count.cases
    names = {*sides[Side.HEAD], *sides[Side.BASE], *standings}
    rows = [
        OperatorRow(
            name,
            sides[Side.HEAD].get(name, {}),
            sides[Side.BASE].get(name, {}),
            standings.get(name, {}),
        )
        for name in names
    ]
    return tuple(sorted(rows, key=_operator_sort_key))


def _operator_sort_key(row: OperatorRow) -> tuple[int, int, int, int, str]:
    """What is new first, then what is fixed, then what fails most; names decide ties."""
    failing = sum(cases for verdict, cases in row.head.items() if verdict.is_failure)
    return (
        -row.standings.get(Classification.REGRESSION, 0),
        -row.standings.get(Classification.FIXED, 0),
        -failing,
        -row.head.get(Verdict.UNSUPPORTED, 0),
        row.operator,
    )


def idempotency_key(*parts: str) -> str:
    """An idempotency key: 32 hex digits that stand for these parts and no others."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
