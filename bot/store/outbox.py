"""The outbox: every effect on GitHub is a row first (DESIGN 3), and the brake that stops them all.

    intended ──claim──▶ sending ──finish──▶ sent
        ▲                  │ ├──give_up──▶ failed     GitHub refuses it; a person must act
        └────── retry ─────┘ └──retry──▶ sending      nobody knows whether it arrived: looked up first
    held ──release──▶ intended

While a sender has an effect in hand, others may decide about it: its target is left, its bug is found mended,
its rows are forgotten. That it is out is recorded all the same; that it is tried again is not (`in_hand`).
While a row is `sending`, `not_before` is the end of its sender's lease.

A living effect (`Draft.living`: a check run, the one comment of a pull request) is changed in place. Posting
it with other content raises its `revision` and sends it again, however many revisions were passed over: only
the last one matters.
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
from bot.store import bugs, withheld
from bot.store.models import Brake, Bug, BugState, Campaign, Cause, Effect, EffectState
from bot.store.withheld import ISSUE as ISSUE

EVERYTHING = "all"  # the brake that stops every target
REHEARSAL = "dry-run"  # reports.mode of a target that hears nothing yet

_COUNTED = (EffectState.INTENDED.value, EffectState.SENDING.value, EffectState.SENT.value)
_OPEN = (EffectState.INTENDED.value, EffectState.SENDING.value)
_SENDING = EffectState.SENDING.value
_AT_FIRST = 64  # rows looked at before more are read


@dataclass(frozen=True)
class Draft:
    """An effect to be.

    key        idempotency key: equal keys are one effect, however often it is posted
    payload    the request's body, as GitHub's API describes it
    signature  of the bug an issue is about, "" for other kinds
    hold       why it must wait, "" if it need not
    cause      for what it waits where that is no maintainer
    number     the issue or pull request it belongs to; None for what stands alone, and where `after` is the
               issue, whose number is not known yet
    after      the key of the effect that must be out before, "" for none
    living     changed in place when it is posted again
    urgent     somebody waits for it
    mode       "live" or "dry-run"; "" for what the campaign's configuration says, dry-run without a campaign
    bug_id     the bug it is about, where the kind is not an issue
    """

    kind: str
    key: str
    target: str
    payload: dict[str, Any]
    signature: str = ""
    hold: str = ""
    cause: Cause = Cause.NONE
    number: int | None = None
    after: str = ""
    living: bool = False
    urgent: bool = False
    mode: str = ""
    bug_id: int | None = None


@dataclass(frozen=True)
class Posted:
    """What became of a draft; state is None where nothing will be sent, and `reason` and `cause` say why."""

    key: str
    state: EffectState | None
    reason: str
    cause: Cause = Cause.NONE


@dataclass(frozen=True)
class Claimed:
    """An effect that one sender works on.

    rehearsal  its target is in dry-run mode: it may be written down, not sent
    resumed    an earlier sender did not finish: it may be on GitHub already
    attempts   counting this one
    number     the issue or pull request it belongs to
    remote     GitHub's id of what is there already and is to be changed; "" for what is new
    revision   which of its contents this is
    withdrawn  why it is not wanted any more: if it is not out by now, it stays here; "" if it is wanted
    """

    key: str
    kind: str
    target: str
    payload: dict[str, Any]
    created_at: datetime
    rehearsal: bool
    resumed: bool
    attempts: int
    number: int | None = None
    remote: str = ""
    revision: int = 1
    withdrawn: str = ""


def post(
    session: Session,
    drafts: Iterable[Draft],
    *,
    campaign_id: int | None,
    issues_per_day: int,
    at: datetime,
) -> list[Posted]:
    """Adds the drafts that are new, in order; posting again what is there changes nothing.

    The bug of an issue must have been seen (`bugs.see`) before; a bug that has its issue gets no
    second one, and an issue over the day's quota is held. Both reasons are recorded with the bug.
    """
    return [_post(session, draft, campaign_id, issues_per_day, at) for draft in drafts]


def _post(session: Session, draft: Draft, campaign_id: int | None, per_day: int, at: datetime) -> Posted:
    if draft.kind == ISSUE:
        return _post_issue(session, draft, campaign_id, per_day, at)
    effect = _add(session, draft, campaign_id, draft.bug_id, at)
    if effect is None:
        effect = session.get_one(Effect, draft.key)
        if draft.living and effect.payload != draft.payload:
            _revise(effect, draft, campaign_id)
    return _posted(effect)


def _posted(effect: Effect, reason: str = "") -> Posted:
    return Posted(effect.key, EffectState(effect.state), reason or effect.reason, Cause(effect.cause))


def _post_issue(
    session: Session, draft: Draft, campaign_id: int | None, per_day: int, at: datetime
) -> Posted:
    bug = bugs.find(session, draft.target, draft.signature)
    if bug is None:
        raise InternalError(f"an issue about the unknown bug {draft.signature} of {draft.target}")
    there = session.get(Effect, draft.key)
    if there is None and bug.issue is not None:
        return Posted(draft.key, None, f"known: reported as #{bug.issue}")
    if not draft.hold:
        hold = over_quota(session, draft.target, per_day, at, draft.key)
        draft = replace(draft, hold=hold, cause=Cause.OVER_QUOTA if hold else Cause.NONE)
    if there is None:
        there = _add(session, draft, campaign_id, bug.id, at)
        if there is None:
            return Posted(draft.key, None, "known: another campaign has just posted its issue")
    elif (
        _waits_for_quota(there) or _leaves_rehearsal(session, there, campaign_id) or _begins_anew(there, bug)
    ):
        _renew(there, draft, campaign_id, at)
    else:
        if there.state == _SENDING and withheld.is_kept(there, Cause.WITHDRAWN):
            withheld.forget(there)  # it is so again
        return _posted(there, _known(there, bug))
    if draft.hold:
        bugs.hold(session, bug.id, draft.hold, at)
    else:
        bugs.unreported(session, bug.id, "its issue is in the outbox", at)
    return _posted(there)


def _add(
    session: Session, draft: Draft, campaign_id: int | None, bug_id: int | None, at: datetime
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
        after=draft.after,
        urgent=draft.urgent,
        mode=draft.mode,
        payload=draft.payload,
        state=_begins(draft),
        created_at=at,
    )
    withheld.note(effect, draft.hold, draft.cause)
    try:
        with session.begin_nested():
            session.add(effect)
    except IntegrityError:  # another process was first
        return None
    return effect


def _begins(draft: Draft) -> str:
    state = EffectState.HELD if draft.hold else EffectState.INTENDED
    return state.value


def _renew(effect: Effect, draft: Draft, campaign_id: int | None, at: datetime) -> None:
    """What nobody has seen yet counts from now, with what the latest campaign knows."""
    effect.payload, effect.created_at = draft.payload, at
    effect.campaign_id, effect.attempts, effect.url, effect.sent_at = campaign_id, 0, "", None
    effect.state = _begins(draft)
    withheld.note(effect, draft.hold, draft.cause)


def _revise(effect: Effect, draft: Draft, campaign_id: int | None) -> None:
    """Other content for what lives. What was refused stays so: GitHub is not asked again for each change."""
    effect.payload, effect.revision, effect.after = draft.payload, effect.revision + 1, draft.after
    effect.campaign_id = campaign_id if campaign_id is not None else effect.campaign_id
    if effect.state == EffectState.SENT.value:
        effect.state, effect.attempts, effect.not_before = EffectState.INTENDED.value, 0, None


def _waits_for_quota(effect: Effect) -> bool:
    return effect.state == EffectState.HELD.value and withheld.is_kept(effect, Cause.OVER_QUOTA)


def _leaves_rehearsal(session: Session, effect: Effect, campaign_id: int | None) -> bool:
    """Whether an issue was only written down, in dry-run mode, which its target has left since."""
    if effect.state != EffectState.SENT.value or not _rehearsed(effect):
        return False
    modes = [_mode_of(session, number) for number in (effect.campaign_id, campaign_id)]
    return modes[0] == REHEARSAL != modes[1]


def _begins_anew(effect: Effect, bug: Bug) -> bool:
    """Whether what nobody has seen yet was about an earlier life of the bug, which was mended before."""
    unseen = effect.state == EffectState.HELD.value or _rehearsed(effect)
    return unseen and bug.state == BugState.NEW.value


def _rehearsed(effect: Effect) -> bool:
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


def has_open(session: Session) -> bool:
    """Whether any effect waits to be sent; for those who look often and must not lock."""
    return session.scalar(select(Effect.key).where(Effect.state.in_(_OPEN)).limit(1)) is not None


def claim(
    session: Session,
    at: datetime,
    lease: timedelta,
    *,
    live: bool,
    paused: Callable[[str], bool] = lambda _target: False,
) -> Claimed | None:
    """Takes the oldest effect that is due and not braked, the urgent ones first, for `lease`; None if there
    is none.

    live    whether the sender reaches GitHub. What is only written down may be written twice, so a
            rehearsal that was left half-way is taken at once, without waiting for its lease to end.
    paused  whether GitHub has asked for a pause where this target is: its effects are passed over
    """
    stopped = {brake.name for brake in brakes(session)}
    if EVERYTHING in stopped:
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
    for effect, mode in _by_and_by(session, query):
        number = _number(session, effect)
        if effect.after and number is None:
            continue
        rehearsal = (effect.mode or mode or REHEARSAL) == REHEARSAL
        resumed = effect.state == EffectState.SENDING.value
        waits = effect.not_before is not None and effect.not_before > at
        if waits and not (resumed and (rehearsal or not live)):
            continue
        if live and not rehearsal and paused(effect.target):
            continue
        effect.state, effect.not_before = EffectState.SENDING.value, at + lease
        effect.attempts += 1
        return Claimed(
            key=effect.key,
            kind=effect.kind,
            target=effect.target,
            payload=effect.payload,
            created_at=effect.created_at,
            rehearsal=rehearsal,
            resumed=resumed,
            attempts=effect.attempts,
            number=number,
            remote=effect.remote,
            revision=effect.revision,
            withdrawn=effect.reason if withheld.is_kept(effect, Cause.WITHDRAWN) else "",
        )
    return None


def _by_and_by(session: Session, query: Select[Any]) -> Iterator[Any]:
    """The rows a few at a time: nearly always one of the first is taken."""
    offset, count = 0, _AT_FIRST
    while rows := session.execute(query.limit(count).offset(offset)).all():
        yield from rows
        offset, count = offset + count, count * 4


def _number(session: Session, effect: Effect) -> int | None:
    """The issue or pull request of an effect; None while the effect before it is not out."""
    if not effect.after:
        return effect.number
    before = session.get(Effect, effect.after)
    if before is None or before.sent_revision == 0:
        return None
    return effect.number if effect.number is not None else before.number or 0


def _mode(config: dict[str, Any] | None) -> str:
    """`reports.mode` of a campaign's configuration; a target that states none hears nothing."""
    return str(((config or {}).get("reports") or {}).get("mode", REHEARSAL))


def finish(
    session: Session,
    key: str,
    url: str,
    number: int | None,
    at: datetime,
    *,
    remote: str = "",
    revision: int = 1,
) -> None:
    """The effect is out, at `url`.

    number    an issue's, None where GitHub gave none
    remote    GitHub's id of it, by which it can be changed
    revision  the content that was sent; if there is a later one by now, that is sent next
    """
    effect = session.get(Effect, key)
    if effect is None:
        return  # forgotten meanwhile
    later = effect.revision > revision
    if not (later and effect.state == EffectState.FAILED.value):  # else its target is watched no more
        effect.state = (EffectState.INTENDED if later else EffectState.SENT).value
        withheld.forget(effect)
    effect.url, effect.sent_at, effect.sent_revision = url, at, revision
    effect.not_before, effect.remote = None, remote or effect.remote
    effect.number = number if number is not None else effect.number
    if later:
        effect.attempts = 0
    if effect.kind == ISSUE and effect.bug_id is not None:
        said = "written down, not sent" if _rehearsed(effect) else "reported"
        bugs.reported(session, effect.bug_id, number, f"{said}: {url}", at)


def in_hand(session: Session, effect: Claimed) -> bool:
    """Whether the effect is still its sender's: nobody has given it up, released or forgotten it since."""
    row = session.get(Effect, effect.key, with_for_update=True)
    return row is not None and row.state == _SENDING and row.attempts == effect.attempts


def keep(session: Session, key: str) -> None:
    """The effect was withdrawn and is not out: it stays here."""
    effect = session.get_one(Effect, key)
    effect.state, effect.not_before = EffectState.HELD.value, None


def retry(
    session: Session, key: str, reason: str, not_before: datetime, *, unsent: bool, tried: bool = True
) -> None:
    """The effect is tried again at `not_before`.

    unsent  whether it surely did not arrive
    tried   False if it only waited for its turn, which is no attempt
    """
    effect = session.get_one(Effect, key)
    effect.attempts -= 0 if tried else 1
    effect.not_before = not_before
    if withheld.is_kept(effect, Cause.WITHDRAWN):
        if unsent:
            effect.state, effect.not_before = EffectState.HELD.value, None
        return
    effect.state = (EffectState.INTENDED if unsent else EffectState.SENDING).value
    withheld.note(effect, reason)


def refuse(session: Session, claimed: Claimed, reason: str, cause: Cause, at: datetime) -> bool:
    """GitHub refuses the effect; False if it was given up or forgotten meanwhile.

    One that nobody tried before has surely not arrived. Where its repository takes it some day, it goes on as
    if it had not been tried; also where we were told of that repository before GitHub's answer was heard.
    """
    effect = session.get(Effect, claimed.key, with_for_update=True)
    if effect is None or effect.attempts != claimed.attempts:
        return False
    ours = effect.state == _SENDING
    if ours:
        give_up(session, claimed.key, reason, at, cause)
    shut = any(withheld.is_kept(effect, one) for one in (Cause.UNWATCHED, Cause.NO_ISSUES))
    if shut and effect.state == EffectState.FAILED.value and not claimed.resumed:
        effect.attempts = 0
    return ours


def give_up(session: Session, key: str, reason: str, at: datetime, cause: Cause = Cause.NONE) -> None:
    """The effect is not sent unless a person releases it or the cause ends; `reason` says what to do."""
    effect = session.get_one(Effect, key)
    withheld.fail(effect, reason, cause)
    if effect.kind == ISSUE and effect.bug_id is not None:
        bugs.unreported(session, effect.bug_id, f"its issue could not be sent: {reason}", at)


def release(session: Session, key: str) -> None:
    """A person wants the effect sent: what is held, failed or only rehearsed. Raises UsageError."""
    effect = session.get(Effect, key)
    if effect is None:
        raise UsageError(f"there is no effect {key}")
    if effect.state not in (EffectState.HELD.value, EffectState.FAILED.value) and not _rehearsed(effect):
        raise UsageError(f"effect {key} is {effect.state}; only held and failed ones can be released")
    # A failed one may have arrived all the same, so it is looked up first.
    failed = effect.state == EffectState.FAILED.value
    effect.state = (EffectState.SENDING if failed else EffectState.INTENDED).value
    withheld.forget(effect)
    effect.not_before, effect.attempts, effect.url = None, 0, ""
    effect.remote = ""  # what it was changed as may be deleted; if it is not, its marker leads to it


def withdraw(session: Session, bug_id: int, reason: str) -> None:
    """Keeps the issue of a bug here that is not out yet: what it says is not so any more.

    One that a sender has in hand, or has left half-way, may be out: it is looked up, and not sent again.
    """
    waiting = (*_OPEN, EffectState.HELD.value)
    query = select(Effect).where(Effect.kind == ISSUE, Effect.bug_id == bug_id, Effect.state.in_(waiting))
    for effect in session.scalars(query):
        if effect.state == _SENDING:
            withheld.note(effect, reason, Cause.WITHDRAWN)
        else:
            withheld.hold(effect, reason, Cause.WITHDRAWN)


def overtaken(session: Session, key: str, payload: dict[str, Any]) -> None:
    """Somebody else has given what lives on GitHub another content: ours is to be sent again when it differs.

    What waits to be sent stays: it is newer than what that person saw.
    """
    effect = session.get(Effect, key)
    if effect is not None and effect.state == EffectState.SENT.value:
        effect.payload = payload


def under_way(session: Session, key: str, since: datetime) -> bool:
    """Whether an effect waits to be sent, or was sent since then: GitHub's answer may not show it yet."""
    effect = session.get(Effect, key)
    if effect is None:
        return False
    return effect.state in _OPEN or (effect.sent_at is not None and effect.sent_at >= since)


def of_campaign(session: Session, campaign_id: int) -> Sequence[Effect]:
    """The effects a campaign intended, in order."""
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


def free_senders(session: Session) -> None:
    """What dead senders were at may be looked up at once; for a process that knows itself to be alone."""
    session.execute(update(Effect).where(Effect.state == EffectState.SENDING.value).values(not_before=None))


def in_state(session: Session, state: EffectState) -> Sequence[Effect]:
    """The effects in one state, oldest first."""
    query = select(Effect).where(Effect.state == state.value)
    return session.scalars(query.order_by(Effect.created_at, Effect.key)).all()


def set_brake(session: Session, name: str, reason: str, at: datetime) -> None:
    """Stops all sending to the target `name`, or to everybody for "all"."""
    brake = session.get(Brake, name)
    if brake is None:
        session.add(Brake(name=name, reason=reason, set_at=at))
    else:
        brake.reason, brake.set_at = reason, at


def clear_brake(session: Session, name: str) -> bool:
    """Takes the brake off; False if none was set."""
    brake = session.get(Brake, name)
    if brake is None:
        return False
    session.delete(brake)
    session.flush()
    return True


def brakes(session: Session) -> Sequence[Brake]:
    """The brakes that are set."""
    return session.scalars(select(Brake).order_by(Brake.name)).all()
