"""The outbox: every effect on GitHub is a row first. Also the kill switches.

    pending ──claim──▶ sending ──mark_sent──▶ sent
        ▲                  │ ├──give_up──▶ failed     GitHub refuses it; a person must act
        └────── retry ─────┘ └──retry──▶ sending      it may have arrived: looked up first
    held ──approve──▶ pending

While an effect is being sent, its target may stop being watched, its bug may be fixed, its rows deleted. A
success is still recorded, a retry is not (`is_still_claimed`). While a row is `sending`, `not_before` is the
end of its sender's lease.

An editable effect (`EffectDraft.editable`: a check run, the sticky comment of a pull request) is updated in
place. Posting it with other content raises its `revision`; only the latest revision is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, defer

from bot.errors import InternalError, UsageError
from bot.store import bugs, proposals, suppression
from bot.store.models import (
    Bug,
    BugState,
    Campaign,
    Effect,
    EffectState,
    KillSwitch,
    SuppressionCause,
    name_of,
)
from bot.store.suppression import ISSUE as ISSUE

ALL_TARGETS = "all"  # the kill switch of all targets
DRY_RUN = "dry-run"  # reports.mode in which effects are only written to files

_COUNTED = (EffectState.PENDING.value, EffectState.SENDING.value, EffectState.SENT.value)
_OPEN = (EffectState.PENDING.value, EffectState.SENDING.value)
_SENDING = EffectState.SENDING.value
_FIRST_PAGE = 64  # rows read before more are fetched


@dataclass(frozen=True)
class EffectDraft:
    """An effect to post.

    key        idempotency key: equal keys are one effect, however often posted
    payload    the request's body, as GitHub's API describes it
    signature  of the bug an issue is about, "" for other kinds
    hold       why it must wait, "" if it need not
    cause      what it waits for, if that is not a maintainer
    number     the issue or pull request it belongs to; None for none, and if `depends_on` is that issue,
               which has no number yet
    depends_on  key of the effect that must be sent before, "" for none
    editable   updated in place when posted again
    urgent     a person waits for it
    mode       a `reports.mode`, or "live"; "" for that of the campaign, dry-run without a campaign
    bug_id     the bug it is about, if the kind is not an issue
    """

    kind: str
    key: str
    target: str
    payload: dict[str, Any]
    signature: str = ""
    hold: str = ""
    cause: SuppressionCause = SuppressionCause.NONE
    number: int | None = None
    depends_on: str = ""
    editable: bool = False
    urgent: bool = False
    mode: str = ""
    bug_id: int | None = None


@dataclass(frozen=True)
class PostResult:
    """Result of posting a draft; state is None if nothing will be sent, for `reason` and `cause`."""

    key: str
    state: EffectState | None
    reason: str
    cause: SuppressionCause = SuppressionCause.NONE


@dataclass(frozen=True)
class ClaimedEffect:
    """An effect leased to one sender.

    dry_run    its target is in dry-run mode: it may be written to a file, not sent
    resumed    an earlier sender did not finish: it may already be on GitHub
    attempts   including this one
    number     the issue or pull request it belongs to
    remote_id  GitHub's id of the object to update; "" for a new one
    revision   of its content
    withdrawn  why it is not wanted any more: it is held if it is not on GitHub; "" if it is wanted
    """

    key: str
    kind: str
    target: str
    payload: dict[str, Any]
    created_at: datetime
    dry_run: bool
    resumed: bool
    attempts: int
    number: int | None = None
    remote_id: str = ""
    revision: int = 1
    withdrawn: str = ""


def post(
    session: Session,
    drafts: Iterable[EffectDraft],
    *,
    campaign_id: int | None,
    issues_per_day: int,
    at: datetime,
) -> list[PostResult]:
    """Adds the new drafts in order; posting an existing one again changes nothing.

    The bug of an issue must be recorded before (`bugs.record_sighting`). A bug with an issue gets no second
    one, and an issue over the day's quota is held; both reasons are recorded with the bug.
    """
    return [_post(session, draft, campaign_id, issues_per_day, at) for draft in drafts]


def _post(
    session: Session, draft: EffectDraft, campaign_id: int | None, per_day: int, at: datetime
) -> PostResult:
    if draft.kind == ISSUE:
        return _post_issue(session, draft, campaign_id, per_day, at)
    effect = _add(session, draft, campaign_id, draft.bug_id, at)
    if effect is None:
        effect = session.get_one(Effect, draft.key)
        if draft.editable and effect.payload != draft.payload:
            _revise(effect, draft, campaign_id)
    return _posted(effect)


def _posted(effect: Effect, reason: str = "") -> PostResult:
    return PostResult(
        effect.key, EffectState(effect.state), reason or effect.reason, SuppressionCause(effect.cause)
    )


def _post_issue(
    session: Session, draft: EffectDraft, campaign_id: int | None, per_day: int, at: datetime
) -> PostResult:
    bug = bugs.find(session, draft.target, draft.signature)
    if bug is None:
        raise InternalError(f"an issue about the unknown bug {draft.signature} of {draft.target}")
    there = session.get(Effect, draft.key)
    if there is None and bug.issue is not None:
        return PostResult(draft.key, None, f"known: reported as #{bug.issue}")
    if not draft.hold:
        hold = over_quota(session, draft.target, per_day, at, draft.key)
        draft = replace(
            draft, hold=hold, cause=SuppressionCause.OVER_QUOTA if hold else SuppressionCause.NONE
        )
    if there is None:
        there = _add(session, draft, campaign_id, bug.id, at)
        if there is None:
            return PostResult(draft.key, None, "known: another campaign has just posted its issue")
    elif (
        _waits_for_quota(there)
        or _leaves_dry_run(session, there, campaign_id)
        or _is_new_occurrence(there, bug)
    ):
        _renew(there, draft, campaign_id, at)
    else:
        if there.state == _SENDING and suppression.has_cause(there, SuppressionCause.WITHDRAWN):
            suppression.clear_reason(there)  # true again
        return _posted(there, _known(there, bug))
    if draft.hold:
        bugs.hold(session, bug.id, draft.hold, at)
    else:
        bugs.mark_unreported(session, bug.id, "its issue is in the outbox", at)
    return _posted(there)


def _add(
    session: Session, draft: EffectDraft, campaign_id: int | None, bug_id: int | None, at: datetime
) -> Effect | None:
    """Adds the row; None if the key exists."""
    if session.get(Effect, draft.key) is not None:
        return None
    effect = Effect(
        key=draft.key,
        kind=draft.kind,
        target=draft.target,
        campaign_id=campaign_id,
        bug_id=bug_id,
        number=draft.number,
        depends_on=draft.depends_on,
        urgent=draft.urgent,
        mode=draft.mode,
        payload=draft.payload,
        state=_initial_state(draft),
        created_at=at,
    )
    suppression.set_reason(effect, draft.hold, draft.cause)
    try:
        with session.begin_nested():
            session.add(effect)
    except IntegrityError:  # another process inserted it first
        return None
    return effect


def _initial_state(draft: EffectDraft) -> str:
    state = EffectState.HELD if draft.hold else EffectState.PENDING
    return state.value


def _renew(effect: Effect, draft: EffectDraft, campaign_id: int | None, at: datetime) -> None:
    """Replaces an unpublished draft with the data of the latest campaign."""
    effect.payload, effect.created_at = draft.payload, at
    effect.campaign_id, effect.attempts, effect.url, effect.sent_at = campaign_id, 0, "", None
    effect.state = _initial_state(draft)
    suppression.set_reason(effect, draft.hold, draft.cause)


def _revise(effect: Effect, draft: EffectDraft, campaign_id: int | None) -> None:
    """Sets new content of an editable effect.

    Refused effects stay refused: they are not retried at each change.
    """
    effect.payload, effect.revision, effect.depends_on = draft.payload, effect.revision + 1, draft.depends_on
    effect.campaign_id = campaign_id if campaign_id is not None else effect.campaign_id
    if effect.state == EffectState.SENT.value:
        effect.state, effect.attempts, effect.not_before = EffectState.PENDING.value, 0, None


def _waits_for_quota(effect: Effect) -> bool:
    return effect.state == EffectState.HELD.value and suppression.has_cause(
        effect, SuppressionCause.OVER_QUOTA
    )


def _leaves_dry_run(session: Session, effect: Effect, campaign_id: int | None) -> bool:
    """Whether an issue was only written in dry-run mode, which its target has left since."""
    if effect.state != EffectState.SENT.value or not _is_dry_run(effect):
        return False
    modes = [_mode_of(session, number) for number in (effect.campaign_id, campaign_id)]
    return modes[0] == DRY_RUN != modes[1]


def _is_new_occurrence(effect: Effect, bug: Bug) -> bool:
    """Whether the unpublished draft is about an earlier occurrence of the bug, which was fixed."""
    unseen = effect.state == EffectState.HELD.value or _is_dry_run(effect)
    return unseen and bug.state == BugState.NEW.value


def _is_dry_run(effect: Effect) -> bool:
    return effect.url.startswith("file:")


def _mode_of(session: Session, campaign_id: int | None) -> str:
    campaign = session.get(Campaign, campaign_id) if campaign_id is not None else None
    return _mode(campaign.config if campaign else None)


def _known(effect: Effect, bug: Bug) -> str:
    if effect.state == EffectState.SENT.value:
        return f"known: reported as {f'#{bug.issue}' if bug.issue is not None else effect.url}"
    if effect.state in _OPEN:
        return "known: its issue is in the outbox"
    return f"known: its issue is {effect.state}: {effect.reason}"


def over_quota(session: Session, target: str, per_day: int, at: datetime, key: str) -> str:
    """Why no issue other than that of `key` may be sent now; "" if fewer than `per_day` were in 24 hours."""
    day_ago = at - timedelta(days=1)
    query = select(func.count()).where(
        Effect.kind == ISSUE,
        Effect.target == target,
        Effect.key != key,
        Effect.state.in_(_COUNTED),
        Effect.created_at > day_ago,
    )
    spent = session.scalar(query) or 0
    if spent < per_day:
        return ""
    return (
        f"over quota: {spent} issues in 24 hours, reports.issues_per_day is {per_day}; "
        "the next campaign that sees the bug tries again"
    )


def has_unsent(session: Session) -> bool:
    """Whether any effect is pending; for frequent polls without a lock."""
    return session.scalar(select(Effect.key).where(Effect.state.in_(_OPEN)).limit(1)) is not None


def claim(
    session: Session,
    at: datetime,
    lease: timedelta,
    *,
    live: bool,
    paused: Callable[[str], bool] = lambda _target: False,
) -> ClaimedEffect | None:
    """Leases the oldest due effect for `lease`, urgent ones first; None if there is none.

    live    whether the sender reaches GitHub. Files may be written twice, so a dry run that was
            interrupted is claimed at once, without waiting for its lease to expire.
    paused  whether GitHub requested a pause for an account: its effects are skipped
    """
    stopped = {kill_switch.name for kill_switch in kill_switches(session)}
    if ALL_TARGETS in stopped:
        return None
    query = (
        select(Effect, Campaign.config["reports"]["mode"].as_string())
        .options(defer(Effect.payload))  # large, and needed for one of them only
        .outerjoin(Campaign, Campaign.id == Effect.campaign_id)
        .where(Effect.state.in_(_OPEN))
        .where(or_(Effect.not_before.is_(None), Effect.not_before <= at, Effect.state == _SENDING))
        .order_by(Effect.urgent.desc(), Effect.created_at, Effect.key)
        .with_for_update(skip_locked=True, of=Effect)
    )
    if stopped:
        query = query.where(Effect.target.not_in(stopped))
    for effect, mode in _in_pages(session, query):
        number = _number(session, effect)
        if effect.depends_on and number is None:
            continue
        dry_run = (effect.mode or mode or DRY_RUN) == DRY_RUN
        resumed = effect.state == EffectState.SENDING.value
        waits = effect.not_before is not None and effect.not_before > at
        if waits and not (resumed and (dry_run or not live)):
            continue
        if live and not dry_run and paused(effect.target):
            continue
        try:
            payload = effect.payload
        except ValueError as error:  # one damaged row must not block the others
            suppression.fail(effect, f"its row in the database is damaged: {error}")
            continue
        effect.state, effect.not_before = EffectState.SENDING.value, at + lease
        effect.attempts += 1
        return ClaimedEffect(
            key=effect.key,
            kind=effect.kind,
            target=effect.target,
            payload=payload,
            created_at=effect.created_at,
            dry_run=dry_run,
            resumed=resumed,
            attempts=effect.attempts,
            number=number,
            remote_id=effect.remote_id,
            revision=effect.revision,
            withdrawn=effect.reason if suppression.has_cause(effect, SuppressionCause.WITHDRAWN) else "",
        )
    return None


def _in_pages(session: Session, query: Select[Any]) -> Iterator[Any]:
    """The rows in pages: nearly always one of the first is taken."""
    offset, count = 0, _FIRST_PAGE
    while rows := session.execute(query.limit(count).offset(offset)).all():
        yield from rows
        offset, count = offset + count, count * 4


def _number(session: Session, effect: Effect) -> int | None:
    """The issue or pull request of an effect; None while the effect it depends on is not sent."""
    if not effect.depends_on:
        return effect.number
    before = session.get(Effect, effect.depends_on)
    if before is None or before.sent_revision == 0:
        return None
    return effect.number if effect.number is not None else before.number or 0


def _mode(config: dict[str, Any] | None) -> str:
    """`reports.mode` of a campaign's configuration; dry-run by default."""
    return str(((config or {}).get("reports") or {}).get("mode", DRY_RUN))


def mark_sent(
    session: Session,
    key: str,
    url: str,
    number: int | None,
    at: datetime,
    *,
    remote_id: str = "",
    revision: int = 1,
) -> None:
    """Marks the effect as sent to `url`.

    number    an issue's, None where GitHub gave none
    remote_id  GitHub's id, needed for updates
    revision   the content that was sent; a later one is sent next
    """
    effect = session.get(Effect, key)
    if effect is None:
        return  # deleted meanwhile
    later = effect.revision > revision
    if not (later and effect.state == EffectState.FAILED.value):  # else the target is no longer watched
        effect.state = (EffectState.PENDING if later else EffectState.SENT).value
        suppression.clear_reason(effect)
    effect.url, effect.sent_at, effect.sent_revision = url, at, revision
    effect.not_before, effect.remote_id = None, remote_id or effect.remote_id
    effect.number = number if number is not None else effect.number
    if later:
        effect.attempts = 0
    if effect.kind == proposals.PULL_REQUEST:
        proposals.mark_opened(session, key, url, number, at)
    if effect.kind == ISSUE and effect.bug_id is not None:
        verb = "written down, not sent" if _is_dry_run(effect) else "reported"
        bugs.mark_reported(session, effect.bug_id, number, f"{verb}: {url}", at)


def is_still_claimed(session: Session, effect: ClaimedEffect) -> bool:
    """Whether the sender still holds the effect: not given up, approved again or deleted since."""
    row = session.get(Effect, effect.key, with_for_update=True)
    return row is not None and row.state == _SENDING and row.attempts == effect.attempts


def hold_withdrawn(session: Session, key: str) -> None:
    """Holds a withdrawn effect that is not on GitHub."""
    effect = session.get_one(Effect, key)
    effect.state, effect.not_before = EffectState.HELD.value, None


def retry(
    session: Session,
    key: str,
    reason: str,
    not_before: datetime,
    *,
    unsent: bool,
    counts_as_attempt: bool = True,
) -> None:
    """Schedules a retry at `not_before`.

    unsent  whether it certainly did not arrive
    counts_as_attempt  False if it only waited for a rate limit
    """
    effect = session.get_one(Effect, key)
    effect.attempts -= 0 if counts_as_attempt else 1
    effect.not_before = not_before
    if suppression.has_cause(effect, SuppressionCause.WITHDRAWN):
        if unsent:
            effect.state, effect.not_before = EffectState.HELD.value, None
        return
    effect.state = (EffectState.PENDING if unsent else EffectState.SENDING).value
    suppression.set_reason(effect, reason)


def refuse(
    session: Session, claimed: ClaimedEffect, reason: str, cause: SuppressionCause, at: datetime
) -> bool:
    """Records that GitHub refuses the effect; False if it was given up or deleted meanwhile.

    A first attempt certainly did not arrive: once the repository accepts effects again, it does not count.
    """
    effect = session.get(Effect, claimed.key, with_for_update=True)
    if effect is None or effect.attempts != claimed.attempts:
        return False
    ours = effect.state == _SENDING
    if ours:
        give_up(session, claimed.key, reason, at, cause)
    shut = any(
        suppression.has_cause(effect, one) for one in (SuppressionCause.UNWATCHED, SuppressionCause.NO_ISSUES)
    )
    if shut and effect.state == EffectState.FAILED.value and not claimed.resumed:
        effect.attempts = 0
    return ours


def give_up(
    session: Session, key: str, reason: str, at: datetime, cause: SuppressionCause = SuppressionCause.NONE
) -> None:
    """Marks the effect as failed until a person releases it or the cause ends; `reason` is what to do."""
    effect = session.get_one(Effect, key)
    suppression.fail(effect, reason, cause)
    if effect.kind == proposals.PULL_REQUEST:
        proposals.mark_failed(session, key, reason, at)
    if effect.kind == ISSUE and effect.bug_id is not None:
        bugs.mark_unreported(session, effect.bug_id, f"its issue could not be sent: {reason}", at)


def approve(session: Session, key: str) -> None:
    """Releases an effect that is held, failed or only written in dry-run mode. Raises UsageError."""
    effect = session.get(Effect, key)
    if effect is None:
        raise UsageError(f"there is no effect {key}")
    if effect.state not in (EffectState.HELD.value, EffectState.FAILED.value) and not _is_dry_run(effect):
        raise UsageError(f"effect {key} is {effect.state}; only held and failed ones can be released")
    # A failed one may have arrived, so it is looked up first.
    failed = effect.state == EffectState.FAILED.value
    effect.state = (EffectState.SENDING if failed else EffectState.PENDING).value
    suppression.clear_reason(effect)
    effect.not_before, effect.attempts, effect.url = None, 0, ""
    effect.remote_id = ""  # the object may be deleted; if it is not, its marker is found


def withdraw(session: Session, bug_id: int, reason: str) -> None:
    """Holds the unsent issue of a bug that is no longer true.

    One that a sender has claimed may have arrived: it is looked up and not sent again.
    """
    waiting = (*_OPEN, EffectState.HELD.value)
    query = select(Effect).where(Effect.kind == ISSUE, Effect.bug_id == bug_id, Effect.state.in_(waiting))
    for effect in session.scalars(query):
        if effect.state == _SENDING:
            suppression.set_reason(effect, reason, SuppressionCause.WITHDRAWN)
        else:
            suppression.hold(effect, reason, SuppressionCause.WITHDRAWN)


def set_remote_content(session: Session, key: str, payload: dict[str, Any]) -> None:
    """Records that somebody else changed the content on GitHub: ours is sent again if it differs.

    Pending content stays: it is newer than what was changed.
    """
    effect = session.get(Effect, key)
    if effect is not None and effect.state == EffectState.SENT.value:
        effect.payload = payload


def is_in_flight(session: Session, key: str, since: datetime) -> bool:
    """Whether an effect is pending or was sent since then, so that GitHub's answer may not show it yet."""
    effect = session.get(Effect, key)
    if effect is None:
        return False
    return effect.state in _OPEN or (effect.sent_at is not None and effect.sent_at >= since)


def of_campaign(session: Session, campaign_id: int) -> Sequence[Effect]:
    """The effects that a campaign posted, in order."""
    query = select(Effect).where(Effect.campaign_id == campaign_id)
    return session.scalars(query.order_by(Effect.created_at, Effect.key)).all()


def held_about(session: Session, target: str, *, bug_id: int | None, pull: int) -> list[Effect]:
    """Held effects about a bug, or of the campaigns of a pull request, oldest first."""
    query = select(Effect).outerjoin(Campaign, Campaign.id == Effect.campaign_id)
    about = Effect.bug_id == bug_id if bug_id is not None else Campaign.pull == pull
    query = query.where(Effect.target == target, Effect.state == EffectState.HELD.value, about)
    return list(session.scalars(query.order_by(Effect.created_at, Effect.key)))


def held_by(session: Session, campaign_id: int) -> list[Effect]:
    """Held issues whose data are of this campaign, oldest first."""
    query = select(Effect).where(
        Effect.campaign_id == campaign_id, Effect.kind == ISSUE, Effect.state == EffectState.HELD.value
    )
    return list(session.scalars(query.order_by(Effect.created_at, Effect.key)))


def release_senders(session: Session) -> None:
    """Ends the leases of dead senders; for a process that runs alone."""
    session.execute(update(Effect).where(Effect.state == EffectState.SENDING.value).values(not_before=None))


def in_state(session: Session, state: EffectState) -> Sequence[Effect]:
    """The effects in one state, oldest first."""
    query = select(Effect).where(Effect.state == state.value)
    return session.scalars(query.order_by(Effect.created_at, Effect.key)).all()


def enable_kill_switch(session: Session, name: str, reason: str, at: datetime) -> None:
    """Stops sending to the target `name`, or to all targets for "all"."""
    kill_switch = session.get(KillSwitch, name)
    if kill_switch is None:
        session.add(KillSwitch(name=name, reason=reason, set_at=at))
    else:
        kill_switch.reason, kill_switch.set_at = reason, at


def disable_kill_switch(session: Session, name: str) -> bool:
    """Removes a kill switch; False if there was none."""
    kill_switch = session.get(KillSwitch, name)
    if kill_switch is None:
        return False
    session.delete(kill_switch)
    session.flush()
    return True


def kill_switches(session: Session) -> Sequence[KillSwitch]:
    """The active kill switches."""
    return session.scalars(select(KillSwitch).order_by(name_of(KillSwitch.name))).all()
