"""The texts of a proposed test: branch, commit message, title and body of its pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.github.limits import marker
from bot.proposals.commit_style import styled_subject
from bot.proposals.coverage_gap import Gap
from bot.proposals.proof import Proof
from bot.proposals.proposal import Proposal
from bot.proposals.regression import Regression
from bot.reports.templates import render

#: Symptom of a test's name → words for the title.
_SYMPTOMS = {
    "values": "values",
    "nan": "NaN",
    "dtype": "the type of the result",
    "shape": "the shape of the result",
    "outputs": "the outputs",
    "convert": "import",
    "compile": "compilation",
    "run": "execution",
}


@dataclass(frozen=True)
class PullRequestText:
    """The texts of one pull request. `title` is also the commit's subject."""

    branch: str
    title: str
    body: str


@dataclass(frozen=True)
class RepositoryHabits:
    """What the texts take from the repository.

    subjects  of its last commits, newest first
    sign_off  whether it asks for `Signed-off-by`
    checks    what its linters find (`bot.proposals.linters`)
    gap       what its tests did not name before
    """

    subjects: tuple[str, ...] = ()
    sign_off: bool = False
    checks: tuple[str, ...] = ()
    gap: Gap = field(default_factory=Gap)


def write_subject(regression: Regression, proposal: Proposal, recent: Sequence[str] = ()) -> str:
    """The subject of the commit, in the form of the repository's recent ones."""
    if proposal.removes_mark:
        return styled_subject(f"Expect {proposal.name} to pass", recent, regression.frontend)
    operators = _operators(regression)
    what = _SYMPTOMS.get(regression.symptom, regression.symptom)
    subject = f"Add a regression test for {what} of {' and '.join(operators[:3]) or 'a program'}"
    return styled_subject(subject, recent, regression.frontend)


def write_text(
    regression: Regression,
    proposal: Proposal,
    proof: Proof,
    bug_id: int,
    bug_title: str,
    effect: str,
    habits: RepositoryHabits = RepositoryHabits(),
) -> PullRequestText:
    """The texts; `effect` is the key by which the pull request is found again."""
    body = render(
        "proposals/pull_request.md.j2",
        issue=regression.issue,
        title=bug_title,
        proof=proof,
        proposal=proposal,
        operators=_operators(regression),
        sign_off=habits.sign_off,
        checks=habits.checks,
        gap=habits.gap,
        provenance=regression.case.provenance,
        reduced=True,
    )
    # The branch of the pull request that added a marked test may still be there.
    branch = f"assay/bug-{bug_id}-{proposal.name.replace('_', '-')}"
    return PullRequestText(
        f"{branch}-passes" if proposal.removes_mark else branch,
        write_subject(regression, proposal, habits.subjects),
        f"{body.strip()}\n\n{marker(effect)}\n",
    )


def _operators(regression: Regression) -> list[str]:
    return [name.rpartition(".")[2] for name in regression.operators]
