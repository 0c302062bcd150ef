"""The report of a campaign: findings grouped by signature, each group with its evidence."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.campaigns.report.summary import NO_TEXT, ProgramText
from bot.reports import reproducer
from bot.reports.campaign_view import CampaignView, FindingView, Tally, ToolchainView
from bot.reports.reproducer_pair import render_pair
from bot.reports.reproducer_short import render_short
from bot.reports.rule_table import Place, RuleRow, RuleTotal, rule_rows, rule_totals
from bot.runners.reproducer_run import BUG_MARKER
from bot.store.models import Classification, Side
from fuzzing.cases import Provenance, TestCase
from fuzzing.outcomes import Verdict

#: Findings of one group that are listed; the others are counted.
MAX_LISTED_CASES = 200
#: Classifications that get a reproducer: flaky and fixed findings do not reproduce.
WITH_REPRODUCER = frozenset(
    {
        Classification.REGRESSION,
        Classification.CHANGED,
        Classification.ALREADY_BROKEN,
        Classification.INCONCLUSIVE,
    }
)

#: Classifications that do not count against or for the change.
UNDECIDED = (
    Classification.FLAKY,
    Classification.FLAKY_PROGRAM,
    Classification.INFRASTRUCTURE,
    Classification.INCONCLUSIVE,
)
#: The exit code of a reproducer that shows its bug.
BUG_SHOWN = 1

#: Licenses of the libraries whose tests are converted, as their packages state them.
LICENSES: Mapping[str, str] = {"onnx": "Apache-2.0", "torch": "BSD-3-Clause", "keras": "Apache-2.0"}


@dataclass(frozen=True)
class CaseRow:
    """One row of a list of findings."""

    case: str
    test: str
    operator: str
    head_runs: Tally
    base_runs: Tally
    reason: str
    size: int


@dataclass(frozen=True)
class Group:
    """The findings of one classification and signature: presumably one bug.

    cases                number of findings, `found_by_reduction` of them with cases that were not planned
    shown                up to MAX_LISTED_CASES of them, the smallest first
    example              the finding with the smallest program, reduced if possible
    original_case        the example's case before reduction
    history              how it was reduced, in a line; "" if it was not
    program              its model as text, "" if unavailable
    script               its reproducer: the short one, else the guarded one; "" if it has none
    guarded              the script with limits and exit codes beside a short `script`, else ""
    replay_instructions  how to replay it with Assay if there is no script; `filename` names either
    tried                exit code of the guarded script at head, None if it was not tried
    replay               the command that replays the case, "" without an outcome at head
    kept                 the case's files by name, for `replay_instructions`
    origin               provenance of its case, None if the case could not be read
    frontend             onnx, torch or keras
    has_base             whether the campaign has a base to compare with
    repeated             whether any of its cases was repeated in fresh processes
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
    has_base: bool = True
    repeated: bool = True

    @property
    def is_short(self) -> bool:
        """Whether `script` is a short one: a pair has no guarded script beside it."""
        return bool(self.guarded) or (bool(self.script) and BUG_MARKER not in self.script.encode())

    @property
    def filename(self) -> str:
        """Name of the reproducer or instructions; one signature may have new and old failures."""
        return f"{self._stem}.{'txt' if self.replay_instructions else 'py'}"

    @property
    def guarded_filename(self) -> str:
        """The file name of the guarded script beside a short one."""
        return f"{self._stem}.guarded.py"

    @property
    def folder(self) -> str:
        """The folder of the case, beside the instructions."""
        return f"{self._stem}-case"

    @property
    def _stem(self) -> str:
        plain = Classification.REGRESSION if self.has_base else Classification.INCONCLUSIVE
        return (
            self.signature
            if self.classification is plain
            else f"{self.signature}-{self.classification.value}"
        )

    @property
    def license_name(self) -> str:
        """License of the test that the example comes from, "" if unknown."""
        return LICENSES.get(self.origin.library, "") if self.origin else ""


@dataclass(frozen=True)
class OperatorRow:
    """Counts of one operator: verdict → cases on both sides, and findings by classification."""

    operator: str
    head: Mapping[Verdict, int]
    base: Mapping[Verdict, int]
    standings: Mapping[Classification, int]


#: Cases from which on it means something that none passes; an estimate.
_TELLING = 20


@dataclass(frozen=True)
class Report:
    """The result of a campaign, the most important groups first."""

    view: CampaignView
    groups: tuple[Group, ...]
    operators: tuple[OperatorRow, ...]
    rules: tuple[RuleRow, ...] = ()

    @property
    def rule_totals(self) -> tuple[RuleTotal, ...]:
        """The pairs of each rule of equivalence; () for a campaign without pairs."""
        return rule_totals(self.rules)

    def with_classification(self, *standings: Classification) -> tuple[Group, ...]:
        """The groups with these classifications, the largest first."""
        return tuple(group for group in self.groups if group.classification in standings)

    def cases(self, *standings: Classification) -> int:
        """The number of planned cases with findings of these classifications."""
        return sum(group.cases - group.found_by_reduction for group in self.with_classification(*standings))

    def verdicts(self, side: Side) -> dict[Verdict, int]:
        """Cases by verdict on one side, in the order of `Verdict`."""
        total: Counter[Verdict] = Counter()
        for count in self.view.counts:
            if count.side is side:
                total[count.verdict] += count.cases
        return {verdict: total[verdict] for verdict in Verdict if total[verdict]}

    def cases_run(self, side: Side = Side.HEAD) -> int:
        """The number of cases with an outcome on that side."""
        return sum(self.verdicts(side).values())

    @property
    def not_run(self) -> int:
        """Planned cases without an outcome at head."""
        return max(0, self.view.planned - self.cases_run())

    @property
    def nothing_passes(self) -> bool:
        """Whether no case passes at head, and none at base if there is one: the toolchain is to blame."""
        sides = [Side.HEAD, *([Side.BASE] if self.verdicts(Side.BASE) else [])]
        return self.cases_run() >= _TELLING and not any(Verdict.PASS in self.verdicts(side) for side in sides)

    @property
    def headline(self) -> str:
        """The report in one line, for a check run's title."""
        return self.headline_for(self.with_classification(Classification.REGRESSION))

    def headline_for(self, new: Sequence[Group]) -> str:
        """The report in one line, counting only these groups as new."""
        if self.nothing_passes:
            verdicts = ", ".join(
                f"{count:,} {verdict.value}" for verdict, count in self.verdicts(Side.HEAD).items()
            )
            return f"Nothing passes, so no compiler is at fault: {verdicts}. Check the toolchain"
        bugs = f"{len(new)} new bug{'' if len(new) == 1 else 's'}"
        found_by_reduction = sum(group.found_by_reduction for group in new)  # not among the cases that ran
        cases = sum(group.cases for group in new) - found_by_reduction
        ran = f"{self.cases_run():,} case{'' if self.cases_run() == 1 else 's'}"
        if cases:
            more = f"; {found_by_reduction} more found during reduction" if found_by_reduction else ""
            return f"{bugs}: {cases} of {ran} fail{'s' * (cases == 1)} at head and passed at base{more}"
        if not self.cases_run():
            return "No cases were run"
        if found_by_reduction:
            return f"{bugs}, found while reducing other cases; {ran} ran"
        failing = self.with_classification(Classification.INCONCLUSIVE)
        if not self.view.base and failing:
            kinds = f"{len(failing)} kind{'' if len(failing) == 1 else 's'} of failure"
            return f"{kinds}: {self.cases(Classification.INCONCLUSIVE)} of {ran} fail"
        old = self.cases(Classification.ALREADY_BROKEN)
        open_ = self.cases(*UNDECIDED)
        if not self.view.base and not old and not open_:
            return f"Nothing fails in {ran}"
        changed = self.cases(Classification.CHANGED)
        rest = [f"{changed} changed"] * bool(changed)
        rest += [f"{old} already broken at base"] * bool(old) + [f"{open_} inconclusive"] * bool(open_)
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
    complete   adds known reference outputs to a case that has none
    """
    builders: dict[tuple[Classification, str], _GroupBuilder] = {}
    standings: dict[str, Counter[Classification]] = {}
    bugs: dict[Place, set[str]] = {}
    for finding in view.findings:
        for place in finding.rules if finding.classification in WITH_REPRODUCER else ():
            bugs.setdefault(place, set()).add(finding.signature)
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
    return Report(view, full, _operators(view, standings), rule_rows(view.rules, bugs, view.eagle))


class _GroupBuilder:
    """Collects the findings of a group: a count, the smallest example, the smallest rows."""

    def __init__(self, first: FindingView) -> None:
        self.example, self.cases, self.found_by_reduction, self.repeated = first, 0, 0, False
        self.rows: list[CaseRow] = []

    def add(self, finding: FindingView) -> None:
        self.cases += 1
        self.found_by_reduction += finding.found_by_reduction
        # A reduced case takes a finding's place only once it was repeated.
        self.repeated |= finding.head_runs.runs > 1 or finding.reduced is not None
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
        """The group with the reduced example, unless its script was tried and did not show the bug."""
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
            repeated=self.repeated,
        )


def _example_sort_key(finding: FindingView) -> tuple[bool, int, str, str]:
    """Reduced findings first, then small ones."""
    smallest = finding.smallest
    return finding.reduced is None, smallest.size, finding.test, finding.case


def _with_evidence(
    group: Group,
    view: CampaignView,
    find_case: Callable[[str], TestCase] | None,
    programs: Mapping[str, ProgramText],
    complete: Callable[[TestCase], TestCase],
) -> Group:
    group = replace(group, has_base=bool(view.base))
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
    shows = tried in (None, BUG_SHOWN)
    if reproducer.has_guarded_script(outcome.backend, case) and shows:
        case = complete(case)
        short = render_short(case, outcome, toolchain, program.code)
        return _add_scripts(described, case, toolchain, "" if case.id in view.short_failed else short)
    if shows and (script := render_pair(case, outcome, toolchain, program.code)):
        return replace(described, script=script)
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
    """New failures first, then fixes, then the number of failures; ties by name."""
    failing = sum(cases for verdict, cases in row.head.items() if verdict.is_failure)
    return (
        -row.standings.get(Classification.REGRESSION, 0),
        -row.standings.get(Classification.FIXED, 0),
        -failing,
        -row.head.get(Verdict.UNSUPPORTED, 0),
        row.operator,
    )


def idempotency_key(*parts: str) -> str:
    """32 hex digits that identify these parts."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
