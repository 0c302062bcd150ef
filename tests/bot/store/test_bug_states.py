"""The life of a bug: what can happen in which state, and where it leads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import InternalError
from bot.store.bug_states import RESOLVED, Event, next_state
from bot.store.models import BugState


def test_the_way_of_a_bug_that_is_mended() -> None:
    state = BugState.NEW
    for event in (Event.FAILED, Event.HELD, Event.REPORTED, Event.FAILED, Event.PASSED):
        state = next_state(state, event, issue=True)
    assert state is BugState.FIXED
    state = next_state(state, Event.PASSED_ELSEWHERE, issue=True)
    assert state is BugState.VERIFIED
    assert next_state(state, Event.CLOSED, issue=True) is BugState.CLOSED


@pytest.mark.parametrize("state", sorted(RESOLVED, key=str))
def test_whatever_is_over_comes_back_when_it_fails(state: BugState) -> None:
    assert next_state(state, Event.FAILED, issue=True) is BugState.REPORTED
    assert next_state(state, Event.FAILED, issue=False) is BugState.NEW


@pytest.mark.parametrize("state", [state for state in BugState if state is not BugState.FIXED])
def test_nothing_is_verified_that_was_not_fixed(state: BugState) -> None:
    with pytest.raises(InternalError, match="cannot be passed elsewhere"):
        next_state(state, Event.PASSED_ELSEWHERE, issue=True)


@given(st.lists(st.sampled_from([event for event in Event if event is not Event.PASSED_ELSEWHERE])))
def test_any_other_history_leads_somewhere_and_never_to_verified(events: list[Event]) -> None:
    state = BugState.NEW
    for event in events:
        state = next_state(state, event, issue=True)
        assert state is not BugState.VERIFIED


@given(st.sampled_from(Event), st.sampled_from(BugState), st.booleans())
def test_the_same_thing_twice_is_once(event: Event, state: BugState, issue: bool) -> None:
    try:
        once = next_state(state, event, issue=issue)
        twice = next_state(once, event, issue=issue)
    except InternalError:
        return
    assert once is twice
