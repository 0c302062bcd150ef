"""The outbox: every effect on GitHub is a row first, and the kill switch that stops them all.

    pending ──claim──▶ sending ──finish──▶ sent
        ▲                  │ ├──give_up──▶ failed     GitHub refuses it; a person must act
        └────── retry ─────┘ └──retry──▶ sending      it may have arrived: looked up first
    held ──release──▶ pending

While an effect is being sent, its target may stop being watched, its bug may be fixed, its rows deleted. A
success is recorded all the same, a retry is not (`is_still_claimed`). While a row is `sending`,
`not_before` is the end of its sender's lease.

An editable effect (`EffectDraft.editable`: a check run, the one comment of a pull request) is changed in
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
from bot.store import bugs, suppression
from bot.store.models import Bug, BugState, Campaign, Effect, EffectState, KillSwitch, SuppressionCause
from bot.store.suppression import ISSUE as ISSUE

ALL_TARGETS = "all"  # the kill switch that stops every target
DRY_RUN = "dry-run"  # reports.mode of a target whose effects are only written down

_COUNTED = (EffectState.PENDING.value, EffectState.SENDING.value, EffectState.SENT.value)
_OPEN = (EffectState.PENDING.value, EffectState.SENDING.value)
_SENDING = EffectState.SENDING.value
_FIRST_PAGE = 64  # rows looked at before more are read


@dataclass(frozen=True)
class EffectDraft:
    """An effect to be.

    key        idempotency key: equal keys are one effect, however often it is posted
    payload    the request's body, as GitHub's API describes it
    signature  of the bug an issue is about, "" for other kinds
    hold       why it must wait, "" if it need not
    cause      for what it waits where that is no maintainer
    number     the issue or pull request it belongs to; None for none, and where `depends_on` is that issue,
               which has no number yet
    depends_on  key of the effect that must be sent before, "" for none
    editable   changed in place when it is posted again
    urgent     a person waits for it
    mode       "live" or "dry-run"; "" for what the campaign's configuration says, dry-run without a campaign
    bug_id     the bug it is about, where the kind is not an issue
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
    """What became of a draft; state is None where nothing will be sent, and `reason` and `cause` say why."""

    key: str
    state: EffectState | None
    reason: str
    cause: SuppressionCause = SuppressionCause.NONE


@dataclass(frozen=True)
class ClaimedEffect:
    """An effect that one sender works on.

    dry_run    its target is in dry-run mode: it may be written down, not sent
    resumed    an earlier sender did not finish: it may be on GitHub already
    attempts   counting this one
    number     the issue or pull request it belongs to
    remote_id  GitHub's id of what is there already and is to be changed; "" for what is new
    revision   which of its contents this is
    withdrawn  why it is not wanted any more: if it is not out by now, it stays here; "" if it is wanted
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
    """Adds the drafts that are new, in order; posting again what is there changes nothing.

    The bug of an issue must have been seen (`bugs.see`) before; a bug that has its issue gets no
    second one, and an issue over the day's quota is held. Both reasons are recorded with the bug.
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
            suppression.clear_reason(there)  # it is so again
        return _posted(there, _known(there, bug))
    if draft.hold:
        bugs.hold(session, bug.id, draft.hold, at)
    else:
        bugs.mark_unreported(session, bug.id, "its issue is in the outbox", at)
    return _posted(there)


def _add(
    session: Session, draft: EffectDraft, campaign_id: int | None, bug_id: int | None, at: datetime
) -> Effect | None:
    """Adds the row; None if the key is taken."""
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
    except IntegrityError:  # another process was first
        return None
    return effect


def _initial_state(draft: EffectDraft) -> str:
    state = EffectState.HELD if draft.hold else EffectState.PENDING
    return state.value


def _renew(effect: Effect, draft: EffectDraft, campaign_id: int | None, at: datetime) -> None:
    """Replaces an unseen draft with the data of the latest campaign."""
    effect.payload, effect.created_at = draft.payload, at
    effect.campaign_id, effect.attempts, effect.url, effect.sent_at = campaign_id, 0, "", None
    effect.state = _initial_state(draft)
    suppression.set_reason(effect, draft.hold, draft.cause)


def _revise(effect: Effect, draft: EffectDraft, campaign_id: int | None) -> None:
    """Other content for what lives. What was refused stays so: GitHub is not asked again for each change."""
    effect.payload, effect.revision, effect.depends_on = draft.payload, effect.revision + 1, draft.depends_on
    effect.campaign_id = campaign_id if campaign_id is not None else effect.campaign_id
    if effect.state == EffectState.SENT.value:
        effect.state, effect.attempts, effect.not_before = EffectState.PENDING.value, 0, None


def _waits_for_quota(effect: Effect) -> bool:
    return effect.state == EffectState.HELD.value and suppression.has_cause(
        effect, SuppressionCause.OVER_QUOTA
    )


def _leaves_dry_run(session: Session, effect: Effect, campaign_id: int | None) -> bool:
    """Whether an issue was only written down, in dry-run mode, which its target has left since."""
    if effect.state != EffectState.SENT.value or not _is_dry_run(effect):
        return False
    modes = [_mode_of(session, number) for number in (effect.campaign_id, campaign_id)]
    return modes[0] == DRY_RUN != modes[1]


def _is_new_occurrence(effect: Effect, bug: Bug) -> bool:
    """Whether the unseen draft is about an earlier occurrence of the bug, which was fixed."""
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
    """Why no issue but that of `key` may go out today; "" where it may."""
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
    """Whether any effect waits to be sent; for those who look often and must not lock."""
    return session.scalar(select(Effect.key).where(Effect.state.in_(_OPEN)).limit(1)) is not None


def claim(
    session: Session,
    at: datetime,
    lease: timedelta,
    *,
    live: bool,
    paused: Callable[[str], bool] = lambda _target: False,
) -> ClaimedEffect | None:
    """Takes the oldest effect that is due and not stopped, the urgent ones first, for `lease`; None if there
    is none.

    live    whether the sender reaches GitHub. What is only written down may be written twice, so a
            rehearsal that was left half-way is taken at once, without waiting for its lease to end.
    paused  whether GitHub has asked for a pause where this target is: its effects are passed over
    """
    stopped = {kill_switch.name for kill_switch in kill_switches(session)}
    if ALL_TARGETS in stopped:
        return None
    query = (
        select(Effect, Campaign.config["reports"]["mode"].as_string())
        .options(defer(Effect.payload))  # large, and wanted of one of them alone
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
        except ValueError as error:  # one damaged row must not keep the others from being sent
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
    """The rows a few at a time: nearly always one of the first is taken."""
    offset, count = 0, _FIRST_PAGE
    while rows := session.execute(query.limit(count).offset(offset)).all():
        yield from rows
        offset, count = offset + count, count * 4


def _number(session: Session, effect: Effect) -> int | None:
    """The issue or pull request of an effect; None while the effect before it is not out."""
    if not effect.depends_on:
        return effect.number
    before = session.get(Effect, effect.depends_on)
    if before is None or before.sent_revision == 0:
        return None
    return effect.number if effect.number is not None else before.number or 0


def _mode(config: dict[str, Any] | None) -> str:
    """`reports.mode` of a campaign's configuration; dry-run where none is set."""
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
    """The effect is out, at `url`.

    number    an issue's, None where GitHub gave none
    remote_id  GitHub's id of it, by which it can be changed
    revision  the content that was sent; if there is a later one by now, that is sent next
    """
    effect = session.get(Effect, key)
    if effect is None:
        return  # deleted meanwhile
    later = effect.revision > revision
    if not (later and effect.state == EffectState.FAILED.value):  # else its target is watched no more
        effect.state = (EffectState.PENDING if later else EffectState.SENT).value
        suppression.clear_reason(effect)
    effect.url, effect.sent_at, effect.sent_revision = url, at, revision
    effect.not_before, effect.remote_id = None, remote_id or effect.remote_id
    effect.number = number if number is not None else effect.number
    if later:
        effect.attempts = 0
    if effect.kind == ISSUE and effect.bug_id is not None:
        said = "written down, not sent" if _is_dry_run(effect) else "reported"
        bugs.mark_reported(session, effect.bug_id, number, f"{said}: {url}", at)


def is_still_claimed(session: Session, effect: ClaimedEffect) -> bool:
    """Whether the effect is still its sender's: not given up, approved again or deleted since."""
    row = session.get(Effect, effect.key, with_for_update=True)
    return row is not None and row.state == _SENDING and row.attempts == effect.attempts


def hold_withdrawn(session: Session, key: str) -> None:
    """The effect was withdrawn and is not out: it stays here."""
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
    """The effect is tried again at `not_before`.

    unsent  whether it surely did not arrive
    counts_as_attempt  False if it only waited for its turn, which is no attempt
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
    """GitHub refuses the effect; False if it was given up or deleted meanwhile.

    A first attempt has surely not arrived: once the repository accepts effects again, it does not count.
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
    """The effect is not sent unless a person releases it or the cause ends; `reason` says what to do."""
    effect = session.get_one(Effect, key)
    suppression.fail(effect, reason, cause)
    if effect.kind == ISSUE and effect.bug_id is not None:
        bugs.mark_unreported(session, effect.bug_id, f"its issue could not be sent: {reason}", at)


def approve(session: Session, key: str) -> None:
    """A person wants the effect sent: what is held, failed or only written down. Raises UsageError."""
    effect = session.get(Effect, key)
    if effect is None:
        raise UsageError(f"there is no effect {key}")
    if effect.state not in (EffectState.HELD.value, EffectState.FAILED.value) and not _is_dry_run(effect):
        raise UsageError(f"effect {key} is {effect.state}; only held and failed ones can be released")
    # A failed one may have arrived all the same, so it is looked up first.
    failed = effect.state == EffectState.FAILED.value
    effect.state = (EffectState.SENDING if failed else EffectState.PENDING).value
    suppression.clear_reason(effect)
    effect.not_before, effect.attempts, effect.url = None, 0, ""
    effect.remote_id = ""  # what it was changed as may be deleted; if it is not, its marker leads to it


def withdraw(session: Session, bug_id: int, reason: str) -> None:
    """Keeps the issue of a bug here that is not out yet: what it says is not so any more.

    One that a sender has in hand, or has left half-way, may be out: it is looked up, and not sent again.
    """
    waiting = (*_OPEN, EffectState.HELD.value)
    query = select(Effect).where(Effect.kind == ISSUE, Effect.bug_id == bug_id, Effect.state.in_(waiting))
    for effect in session.scalars(query):
        if effect.state == _SENDING:
            suppression.set_reason(effect, reason, SuppressionCause.WITHDRAWN)
        else:
            suppression.hold(effect, reason, SuppressionCause.WITHDRAWN)


def set_remote_content(session: Session, key: str, payload: dict[str, Any]) -> None:
    """Somebody else has given what lives on GitHub another content: ours is to be sent again when it differs.

    What waits to be sent stays: it is newer than what that person saw.
    """
    effect = session.get(Effect, key)
    if effect is not None and effect.state == EffectState.SENT.value:
        effect.payload = payload


def is_in_flight(session: Session, key: str, since: datetime) -> bool:
    """Whether an effect waits to be sent, or was sent since then: GitHub's answer may not show it yet."""
    effect = session.get(Effect, key)
    if effect is None:
        return False
    return effect.state in _OPEN or (effect.sent_at is not None and effect.sent_at >= since)


def of_campaign(session: Session, campaign_id: int) -> Sequence[Effect]:
    """The effects a campaign pending, in order."""
    query = select(Effect).where(Effect.campaign_id == campaign_id)
    return session.scalars(query.order_by(Effect.created_at, Effect.key)).all()


def held_about(session: Session, target: str, *, bug_id: int | None, pull: int) -> list[Effect]:
    """What is held about a bug, or by the campaigns of a pull request, oldest first."""
    query = select(Effect).outerjoin(Campaign, Campaign.id == Effect.campaign_id)
    about = Effect.bug_id == bug_id if bug_id is not None else Campaign.pull == pull
    query = query.where(Effect.target == target, Effect.state == EffectState.HELD.value, about)
    return list(session.scalars(query.order_by(Effect.created_at, Effect.key)))


def held_by(session: Session, campaign_id: int) -> list[Effect]:
    """The held issues that a campaign was the last to tell of, oldest first."""
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
    """Stops all sending to the target `name`, or to everybody for "all"."""
    kill_switch = session.get(KillSwitch, name)
    if kill_switch is None:
        session.add(KillSwitch(name=name, reason=reason, set_at=at))
    else:
        kill_switch.reason, kill_switch.set_at = reason, at


def disable_kill_switch(session: Session, name: str) -> bool:
    """Ends the stop; False if there was none."""
    kill_switch = session.get(KillSwitch, name)
    if kill_switch is None:
        return False
    session.delete(kill_switch)
    session.flush()
    return True


def kill_switches(session: Session) -> Sequence[KillSwitch]:
    """The kill switches that are set."""
    return session.scalars(select(KillSwitch).order_by(KillSwitch.name)).all()
