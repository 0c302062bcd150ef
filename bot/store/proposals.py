"""Proposed regression tests: which are open, and what became of each.

open ──merged──▶ merged             open again without its mark, if it is expected to fail and passes
  ├──closed by a person──▶ refused    never proposed again
  └──GitHub refuses it──▶ failed      may be proposed again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from bot.store import audit, bugs
from bot.store.bug_states import RESOLVED
from bot.store.models import BugState, Effect, EffectState, Proposal, ProposalState

PULL_REQUEST = "pull_request"  # the kind of effect that opens one
BRANCH_REWRITE = "branch_rewrite"  # the kind that writes its branch anew
_MERGED = "merged"
_IN_A_PULL = frozenset({ProposalState.OPEN.value, ProposalState.MERGED.value})
_NOT_SENT = frozenset({EffectState.FAILED, EffectState.HELD})


def find(session: Session, target: str, signature: str) -> Proposal | None:
    """The proposal for a bug."""
    query = select(Proposal).where(Proposal.target == target, Proposal.signature == signature)
    return session.scalars(query).one_or_none()


def in_state(session: Session, target: str, state: ProposalState) -> Sequence[Proposal]:
    """The proposals of a target in a state, oldest first."""
    query = select(Proposal).where(Proposal.target == target, Proposal.state == state.value)
    return session.scalars(query.order_by(Proposal.id)).all()


def newest(session: Session, target: str, most: int) -> Sequence[Proposal]:
    """The last tests that were proposed for a target, newest first."""
    query = select(Proposal).where(Proposal.target == target).order_by(Proposal.id.desc())
    return session.scalars(query.limit(most)).all()


def expected_to_fail(session: Session, target: str, signature: str) -> Proposal | None:
    """The proposal for a bug if its pull request holds a test that is marked as failing, merged or not.

    Such a test was proved on the newest build alone; tests of passing cases are marked by what they cover.
    """
    one = find(session, target, signature)
    if one is None or one.number is None or one.state not in _IN_A_PULL or "covers" in one.proof:
        return None
    return one if one.proof.get("bad", ...) is None else None


def of_pull(session: Session, target: str, number: int) -> Sequence[Proposal]:
    """The open proposals of a pull request: one for a bug, several for a batch."""
    query = select(Proposal).where(Proposal.target == target, Proposal.number == number)
    return session.scalars(
        query.where(Proposal.state == ProposalState.OPEN.value).order_by(Proposal.id)
    ).all()


def known_cases(session: Session, target: str) -> frozenset[str]:
    """The signatures of all proposals that did not fail; that of a test from a passing case is its case."""
    query = select(Proposal.signature).where(Proposal.target == target)
    return frozenset(session.scalars(query.where(Proposal.state != ProposalState.FAILED.value)))


def declined(session: Session, target: str) -> frozenset[tuple[str, str]]:
    """What closed batches would have covered: (operator, parameter), "" for the operator itself."""
    rows = in_state(session, target, ProposalState.REFUSED)
    return frozenset((str(one), str(other)) for row in rows for one, other in row.proof.get("covers", ()))


def last_content(session: Session, proposal: Proposal) -> Mapping[str, Any] | None:
    """What its branch and its pull request got last; None if that was deleted.

    The fields are those of the effect (`bot.github.effects`): `commit`, `body`, and `fork` if it is in one.
    """
    effect = session.get(Effect, proposal.effect)
    if effect is None:
        return None
    stays = effect.kind == BRANCH_REWRITE and EffectState(effect.state) in _NOT_SENT
    last: Mapping[str, Any] = effect.payload["replaces"] if stays else effect.payload
    kept = {name: last[name] for name in ("commit", "body")}
    return kept | ({"fork": fork} if (fork := effect.payload.get("fork")) else {})


def ending(session: Session, target: str, signature: str) -> str:
    """What became of the bug's test, if that keeps another from being proposed; "" if it does not.

    A merged test that is expected to fail keeps none from it once the bug is fixed: its mark has to go.
    """
    known = find(session, target, signature)
    if known is None or known.state == ProposalState.FAILED.value:
        return ""
    if known.state == ProposalState.MERGED.value and expected_to_fail(session, target, signature):
        bug = bugs.find(session, target, signature)
        if bug is not None and BugState(bug.state) in RESOLVED:
            return ""
    where = f"#{known.number}" if known.number is not None else "a pull request that is being opened"
    messages = {
        ProposalState.OPEN.value: f"{where} proposes a test for this bug",
        ProposalState.MERGED.value: f"{where} added a test for this bug",
        ProposalState.REFUSED.value: f"{where} was closed, so no test is proposed for this bug again",
    }
    return messages[known.state]


def obstacle(session: Session, target: str, signature: str, most: int) -> str:
    """Why no test may be proposed for a bug now; "" if one may. At most `most` are open in a repository."""
    return ending(session, target, signature) or open_obstacle(session, target, most)


def open_obstacle(session: Session, target: str, most: int) -> str:
    """Why no pull request may be opened now, "" if one may: at most `most` are open in a repository."""
    waiting = {one.effect: one for one in in_state(session, target, ProposalState.OPEN)}
    if len(waiting) < most:
        return ""
    listed = ", ".join(f"#{one.number}" if one.number is not None else one.test for one in waiting.values())
    return f"{listed} is open, and proposals.open is {most}: merge or close it first"


def record(session: Session, proposal: Proposal) -> None:
    """Adds an open proposal in place of one that failed, or whose mark of an expected failure goes."""
    known = find(session, proposal.target, proposal.signature)
    if known is not None:
        session.delete(known)
        session.flush()
    session.add(proposal)
    _audit(session, proposal, "proposed", f"test {proposal.test} in {proposal.path}", proposal.created_at)


def mark_opened(session: Session, effect: str, url: str, number: int | None, at: datetime) -> None:
    """Records the pull request of a sent effect; the number is None in dry runs."""
    for one in session.scalars(select(Proposal).where(Proposal.effect == effect)):
        one.url, one.number, one.updated_at = url, number, at
        one.reason = f"opened: {url}" if number is not None else f"written down, not sent: {url}"


def mark_failed(session: Session, effect: str, reason: str, at: datetime) -> None:
    """Records that GitHub refuses the effect; the bug's test may be proposed again."""
    for one in session.scalars(select(Proposal).where(Proposal.effect == effect)):
        if one.state == ProposalState.OPEN.value and one.number is None:
            one.state, one.reason, one.updated_at = ProposalState.FAILED.value, reason, at
            _audit(session, one, "refused", reason, at)


def follow(session: Session, target: str, number: int, state: str, at: datetime) -> None:
    """Records what became of a pull request, by GitHub's state: open, closed or merged."""
    query = select(Proposal).where(Proposal.target == target, Proposal.number == number)
    for one in session.scalars(query):
        now = _STATES.get(state)
        if now is None or one.state == now.value:
            continue
        one.state, one.updated_at = now.value, at
        one.reason = f"#{number} is {state}"
        _audit(session, one, "proposal_" + now.value, one.reason, at)


#: GitHub's state of a pull request → ours. A reopened one counts as open again.
_STATES = {"open": ProposalState.OPEN, "closed": ProposalState.REFUSED, _MERGED: ProposalState.MERGED}


def _audit(session: Session, one: Proposal, action: str, reason: str, at: datetime) -> None:
    audit.record(session, one.target, action, f"proposal:{one.test}", reason, at)
