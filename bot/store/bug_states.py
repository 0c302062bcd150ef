"""State machine of bugs. Contains no database rows.

    new ──▶ held ──▶ reported ──passes──▶ fixed ──passes elsewhere──▶ verified ──▶ closed
     ▲                                     │                            │             │
     └──────────── fails again (reported if it has an issue) ◀──────────┴─────────────┘

"Passes" means three fresh runs on a build whose control case passes; docs/bugs.md has the rules.
"""

from __future__ import annotations

from enum import Enum

from bot.errors import InternalError
from bot.store.models import BugState


class Event(Enum):
    """What happened to a bug."""

    FAILED = "failed"  # in a campaign or a retest
    HELD = "held"  # its issue waits
    REPORTED = "reported"  # its issue is published
    UNSENT = "unsent"  # its issue could not be sent, or must be sent again
    PASSED = "passed"  # passes on a healthy build of one commit
    PASSED_ELSEWHERE = "passed elsewhere"  # and on a build of another commit
    CLOSED = "closed"  # fix verified, closed by a person, or stale
    REOPENED = "reopened"  # a person reopened its issue


NEW, HELD, REPORTED = BugState.NEW, BugState.HELD, BugState.REPORTED
FIXED, VERIFIED, CLOSED = BugState.FIXED, BugState.VERIFIED, BugState.CLOSED

#: States in which a bug needs no action.
RESOLVED = frozenset({FIXED, VERIFIED, CLOSED})

#: State and event → state. FAILED in a RESOLVED state: see `next_state`.
_TRANSITIONS: dict[tuple[BugState, Event], BugState] = {
    **{(state, Event.FAILED): state for state in (NEW, HELD, REPORTED)},
    **{(state, Event.HELD): HELD for state in (NEW, HELD, REPORTED)},
    **{(state, Event.REPORTED): REPORTED for state in (NEW, HELD, REPORTED)},
    **{(state, Event.UNSENT): NEW for state in (NEW, HELD, REPORTED)},
    **{(state, Event.PASSED): FIXED for state in (NEW, HELD, REPORTED, FIXED)},
    (VERIFIED, Event.PASSED): VERIFIED,
    (CLOSED, Event.PASSED): CLOSED,
    (FIXED, Event.PASSED_ELSEWHERE): VERIFIED,
    **{(state, Event.CLOSED): CLOSED for state in BugState},
    **{(state, Event.REOPENED): REPORTED for state in BugState},
    # An issue that was in the outbox when the bug was fixed is still sent; the bug stays fixed.
    **{(state, Event.REPORTED): state for state in RESOLVED},
    **{(state, Event.UNSENT): state for state in RESOLVED},
    **{(state, Event.HELD): state for state in RESOLVED},
}


def next_state(state: BugState, event: Event, *, issue: bool) -> BugState:
    """The state after an event; `issue` is whether the bug has an issue on GitHub.

    Raises InternalError for an event that is impossible in that state.
    """
    if event is Event.FAILED and state in RESOLVED:
        return REPORTED if issue else NEW
    try:
        return _TRANSITIONS[state, event]
    except KeyError:
        raise InternalError(f"a bug that is {state.value} cannot be {event.value}") from None
