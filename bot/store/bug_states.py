"""The states of a bug as a table: which event leads from which state to which. No rows here.

    new ──▶ held ──▶ reported ──passes──▶ fixed ──passes elsewhere──▶ verified ──▶ closed
     ▲                                     │                            │             │
     └──────────── fails again (reported, where it has its issue) ◀─────┴─────────────┘

"Passes" is three fresh runs on a build proved healthy, never one good day: docs/bugs.md has the rules.
"""

from __future__ import annotations

from enum import Enum

from bot.errors import InternalError
from bot.store.models import BugState


class Event(Enum):
    """What happens to a bug."""

    FAILED = "failed"  # a campaign or a retest saw it
    HELD = "held"  # its issue waits
    REPORTED = "reported"  # its issue is out
    UNSENT = "unsent"  # its issue could not be sent, or must be sent again
    PASSED = "passed"  # it does not fail on a healthy build of a commit
    PASSED_ELSEWHERE = "passed elsewhere"  # nor on one of another commit
    CLOSED = "closed"  # for good: by us with its fix verified, by a person, or for silence
    REOPENED = "reopened"  # a person opened its issue again


NEW, HELD, REPORTED = BugState.NEW, BugState.HELD, BugState.REPORTED
FIXED, VERIFIED, CLOSED = BugState.FIXED, BugState.VERIFIED, BugState.CLOSED

#: States in which a bug needs no action.
RESOLVED = frozenset({FIXED, VERIFIED, CLOSED})

#: State and event → state. FAILED in a RESOLVED state leads back: see `next_state`.
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
    # An issue that was in the outbox when its bug was found fixed goes out all the same: it stays fixed.
    **{(state, Event.REPORTED): state for state in RESOLVED},
    **{(state, Event.UNSENT): state for state in RESOLVED},
    **{(state, Event.HELD): state for state in RESOLVED},
}


def next_state(state: BugState, event: Event, *, issue: bool) -> BugState:
    """The state that an event leads to; `issue` says whether the bug has its issue on GitHub.

    Raises InternalError for what cannot happen in that state.
    """
    if event is Event.FAILED and state in RESOLVED:
        return REPORTED if issue else NEW
    try:
        return _TRANSITIONS[state, event]
    except KeyError:
        raise InternalError(f"a bug that is {state.value} cannot be {event.value}") from None
