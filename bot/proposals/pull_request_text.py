"""The texts of a proposed test: branch, commit message, title and body of its pull request."""

from __future__ import annotations

from dataclasses import dataclass

from bot.github.limits import marker
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


def write_text(
    regression: Regression, proposal: Proposal, proof: Proof, bug_id: int, bug_title: str, effect: str
) -> PullRequestText:
    """The texts; `effect` is the key by which the pull request is found again."""
    operators = [name.rpartition(".")[2] for name in regression.operators]
    what = _SYMPTOMS.get(regression.symptom, regression.symptom)
    body = render(
        "proposals/pull_request.md.j2",
        issue=regression.issue,
        title=bug_title,
        proof=proof,
        proposal=proposal,
        operators=operators,
        provenance=regression.case.provenance,
        reduced=True,
    )
    subject = f"Add a regression test for {what} of {' and '.join(operators[:3]) or 'a program'}"
    return PullRequestText(
        f"assay/bug-{bug_id}-{proposal.name.replace('_', '-')}",
        subject,
        f"{body.strip()}\n\n{marker(effect)}\n",
    )
