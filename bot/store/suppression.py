"""Why effects are not sent. `Effect.cause` decides what reactivates them.

    withdrawn     it is no longer true                      it becomes true while it is being sent
    over quota    it waits for the next day                 the next campaign that sees its bug
    checking      it waits for its last check               the job `issue_filing`
    unwatched     its repository is not watched             the repository is watched again
    no issues     its repository has no issues              issues are enabled again
    (none)        a person must act                         a person

The reason beside it is for people; no code depends on its words.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from bot.store.models import Effect, EffectState, SuppressionCause

ISSUE = "issue"  # the kind that GitHub refuses if issues are disabled

_UNSENT = (EffectState.PENDING.value, EffectState.SENDING.value, EffectState.HELD.value)
#: Prefixes of reasons.
_REASON_PREFIXES = {
    SuppressionCause.WITHDRAWN: "withdrawn: ",
    SuppressionCause.UNWATCHED: "not sent: ",
    SuppressionCause.NO_ISSUES: "not sent: ",
}


def set_reason(effect: Effect, reason: str, cause: SuppressionCause = SuppressionCause.NONE) -> None:
    """Sets why the effect is in its state."""
    effect.reason, effect.cause = f"{_REASON_PREFIXES.get(cause, '')}{reason}" if reason else "", cause.value


def clear_reason(effect: Effect) -> None:
    """Clears reason and cause."""
    set_reason(effect, "")


def hold(effect: Effect, reason: str, cause: SuppressionCause = SuppressionCause.NONE) -> None:
    """Holds the effect until a person or the end of the cause releases it."""
    set_reason(effect, reason, cause)
    effect.state, effect.not_before = EffectState.HELD.value, None


def fail(effect: Effect, reason: str, cause: SuppressionCause = SuppressionCause.NONE) -> None:
    """Marks the effect as failed."""
    set_reason(effect, reason, cause)
    effect.state, effect.not_before = EffectState.FAILED.value, None


def has_cause(effect: Effect, cause: SuppressionCause) -> bool:
    """Whether the effect is suppressed for this cause."""
    return effect.cause == cause.value


def fail_all(session: Session, target: str, reason: str) -> int:
    """Fails the unsent effects of a target that is no longer watched; returns how many."""
    return _give_up(session, SuppressionCause.UNWATCHED, reason, Effect.target == target)


def fail_issues(session: Session, target: str, reason: str) -> int:
    """Fails the unsent issues of a target and the effects that depend on them; returns how many."""
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
    """Reactivates a target's effects that failed for this cause; returns how many.

    Published effects with newer content are sent again. Effects that may have arrived stay failed.

    drop_unsent  whether unsent effects are deleted, so that the next campaign posts them with current
               data; else they are sent
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
