"""Effects that stay here, and what sets them going again: one word in a row (`Effect.cause`) decides.

    withdrawn     what it says is not so any more           it is so again, while it was being sent
    over quota    it waits for the next day                 the next campaign that sees its bug
    checking      it waits for its last look                the job `filing`
    unwatched     its repository is not watched             the repository is watched again
    no issues     its repository has no issues              it has them again
    (none)        a person must act                         a person

The reason beside it is for people; nothing is decided by its words.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from bot.store.models import Effect, EffectState, SuppressionCause

ISSUE = "issue"  # the kind of effect that GitHub refuses where issues are switched off

_UNSENT = (EffectState.PENDING.value, EffectState.SENDING.value, EffectState.HELD.value)
#: How reasons begin, for people.
_REASON_PREFIXES = {
    SuppressionCause.WITHDRAWN: "withdrawn: ",
    SuppressionCause.UNWATCHED: "not sent: ",
    SuppressionCause.NO_ISSUES: "not sent: ",
}


def set_reason(effect: Effect, reason: str, cause: SuppressionCause = SuppressionCause.NONE) -> None:
    """Says why the effect is as it is."""
    effect.reason, effect.cause = f"{_REASON_PREFIXES.get(cause, '')}{reason}" if reason else "", cause.value


def clear_reason(effect: Effect) -> None:
    """Nothing keeps the effect here any more."""
    set_reason(effect, "")


def hold(effect: Effect, reason: str, cause: SuppressionCause = SuppressionCause.NONE) -> None:
    """Holds the effect until a person or its cause ends that."""
    set_reason(effect, reason, cause)
    effect.state, effect.not_before = EffectState.HELD.value, None


def fail(effect: Effect, reason: str, cause: SuppressionCause = SuppressionCause.NONE) -> None:
    """Gives the effect up."""
    set_reason(effect, reason, cause)
    effect.state, effect.not_before = EffectState.FAILED.value, None


def has_cause(effect: Effect, cause: SuppressionCause) -> bool:
    """Whether that is why the effect stays here."""
    return effect.cause == cause.value


def fail_all(session: Session, target: str, reason: str) -> int:
    """Gives up what a target would still be sent, which is watched no more; returns how many effects."""
    return _give_up(session, SuppressionCause.UNWATCHED, reason, Effect.target == target)


def fail_issues(session: Session, target: str, reason: str) -> int:
    """Gives up the unsent issues of a target, and what hangs on them; returns how many effects."""
    of_issues = or_(Effect.kind == ISSUE, Effect.depends_on != "")
    return _give_up(session, SuppressionCause.NO_ISSUES, reason, Effect.target == target, of_issues)


def _give_up(session: Session, cause: SuppressionCause, reason: str, *which: ColumnElement[bool]) -> int:
    result = session.execute(
        update(Effect)
        .where(Effect.state.in_(_UNSENT), *which)
        .values(
            state=EffectState.FAILED.value,
            reason=f"{_REASON_PREFIXES[cause]}{reason}",
            cause=cause.value,
            not_before=None,
        )
        .returning(Effect.key)
    )
    return len(result.all())


def reactivate(session: Session, target: str, cause: SuppressionCause, *, drop_unsent: bool) -> int:
    """Undoes the giving up of a target's effects for this cause, which is none any more; returns how many.

    What lives on GitHub in an older revision is sent as it is now. What may have arrived stays given up.

    drop_unsent  whether what never left is dropped, so that the next campaign posts it with current data;
               else it is sent after all
    """
    query = select(Effect).where(
        Effect.target == target, Effect.state == EffectState.FAILED.value, Effect.cause == cause.value
    )
    return sum(
        _reactivate(session, effect, drop_unsent=drop_unsent) for effect in session.scalars(query).all()
    )


def _reactivate(session: Session, effect: Effect, *, drop_unsent: bool) -> bool:
    if effect.sent_revision:
        later = effect.revision > effect.sent_revision
        effect.state = (EffectState.PENDING if later else EffectState.SENT).value
    elif effect.attempts:
        return False
    elif drop_unsent:
        session.delete(effect)
        session.flush()
        return True
    else:
        effect.state = EffectState.PENDING.value
    clear_reason(effect)
    effect.attempts, effect.not_before = 0, None
    session.flush()
    return True
