"""What events mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.webhooks import CampaignIntent
from bot.webhooks.events import ParsedEvent, PayloadError, names, parse_event
from bot.webhooks.intents import CommentIntent

OLD, NEW, ZERO = "1" * 40, "a" * 40, "0" * 40


def push(**changes: Any) -> bytes:
    fields = {
        "ref": "refs/heads/main",
        "before": OLD,
        "after": NEW,
        "deleted": False,
        "repository": {"full_name": "octo-org/compiler", "id": 1},
        "installation": {"id": 42},
    }
    return json.dumps({k: v for k, v in (fields | changes).items() if v is not None}).encode()


def test_a_push_asks_for_a_campaign() -> None:
    intent = CampaignIntent(
        target="octo-org/compiler",
        github_id=1,
        head=NEW,
        base=OLD,
        ref="refs/heads/main",
        trigger="push",
        installation=42,
    )
    assert parse_event("push", push()) == ParsedEvent(intents=(intent,))


def test_a_new_branch_has_no_base() -> None:
    (intent,) = parse_event("push", push(before=ZERO)).intents
    assert isinstance(intent, CampaignIntent)
    assert intent.base == ""


def test_a_repository_webhook_names_no_installation() -> None:
    (intent,) = parse_event("push", push(installation=None)).intents
    assert intent.installation is None


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"ref": "refs/tags/v1"}, "refs/tags/v1 is not a branch"),
        ({"after": ZERO, "deleted": True}, "refs/heads/main was deleted"),
        ({"after": ZERO}, "refs/heads/main was deleted"),
    ],
)
def test_tags_and_deletions_are_ignored(changes: dict[str, Any], note: str) -> None:
    assert parse_event("push", push(**changes)) == ParsedEvent(note=note, ignored=True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"after": "main"}, "after"),
        ({"after": 7}, "after"),
        ({"ref": None}, "ref"),
        ({"repository": {"full_name": "../.."}}, "repository.full_name"),
        ({"repository": {"full_name": "a/b/c"}}, "repository.full_name"),
        ({"repository": {"full_name": "a/b\n"}}, "repository.full_name"),
        ({"repository": []}, "repository"),
        ({"installation": {"id": "42"}}, "installation.id"),
        ({"deleted": "no"}, "deleted"),
    ],
)
def test_a_payload_that_does_not_fit_is_told(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PayloadError) as caught:
        parse_event("push", push(**changes))
    assert f"the push payload does not fit: {field}: " in str(caught.value)


def test_ping_is_recorded() -> None:
    assert parse_event("ping", b'{"zen": "Design for failure.", "hook_id": 9}') == ParsedEvent(
        note="webhook 9 works"
    )


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"ref": "refs/heads/gh-readonly-queue/main/pr-1-abc"}, "is a merge queue's"),
        ({"ref": "refs/heads/assay/test-7", "sender": {"login": "x[bot]", "type": "Bot"}}, "is our own"),
    ],
)
def test_branches_that_programs_make_are_left_to_their_own_events(changes: dict[str, Any], note: str) -> None:
    meaning = parse_event("push", push(**changes))
    assert (meaning.ignored, note in meaning.note) == (True, True)


def test_a_person_may_call_a_branch_what_they_like() -> None:
    sender = {"login": "ada", "type": "User"}
    assert parse_event("push", push(ref="refs/heads/assay/mine", sender=sender)).intents


def test_a_payload_with_an_action_that_nobody_uses_need_not_fit() -> None:
    meaning = parse_event("issues", b'{"action": "pinned"}')
    assert meaning == ParsedEvent(note="nothing is done about 'pinned' of 'issues' events", ignored=True)


@pytest.mark.parametrize(
    ("body", "ours"),
    [
        ("/assay run", False),
        ("Done.\n\n<!-- assay:0123abcd -->", True),
        ("Done.\n<!-- assay:0123abcd -->\n", True),
        ("> Done.\n> <!-- assay:0123abcd -->", False),
        ("> Done.\n> <!-- assay:0123abcd -->\n\n/assay rerun", False),
        ("<!-- assay:0123abcd -->\n/assay rerun", False),
    ],
)
def test_our_own_comments_are_told_from_quotations_of_them(body: str, ours: bool) -> None:
    fields = {
        "action": "created",
        "repository": {"full_name": "octo-org/compiler", "id": 1},
        "issue": {"number": 3},
        "comment": {"id": 5, "user": {"login": "ada", "type": "User"}, "body": body},
    }
    meaning = parse_event("issue_comment", json.dumps(fields).encode())
    assert (meaning.ignored, not meaning.intents) == (ours, ours)


def test_an_edit_is_attributed_to_whoever_made_it() -> None:
    """People with write access may edit the comments of others."""
    fields = {
        "action": "edited",
        "repository": {"full_name": "octo/compiler", "id": 7},
        "issue": {"number": 3},
        "comment": {
            "id": 5,
            "user": {"login": "stranger"},
            "body": "/assay help",
            "created_at": "2026-11-20T12:00:00Z",
            "updated_at": "2026-11-20T13:00:00Z",
        },
        "sender": {"login": "ada"},
    }
    for action, author, hour in (("created", "stranger", 12), ("edited", "ada", 13)):
        (intent,) = parse_event("issue_comment", json.dumps(fields | {"action": action}).encode()).intents
        assert isinstance(intent, CommentIntent)
        assert intent.written_at is not None
        assert (intent.author, intent.edited, intent.written_at.hour) == (author, action == "edited", hour)


def test_the_largest_payload_that_github_sends_is_read() -> None:
    padding = "x" * (25 * 1024 * 1024 - 2000)
    body = push(head_commit={"message": padding})
    assert 24 << 20 < len(body) <= 25 << 20
    assert len(parse_event("push", body).intents) == 1


def test_other_events_are_ignored_with_the_reason() -> None:
    assert parse_event("star", b"{}") == ParsedEvent(note="nothing is done about 'star' events", ignored=True)
    assert names() >= {"push", "ping", "installation", "pull_request", "issue_comment", "merge_group"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(
    [
        "ref",
        "before",
        "after",
        "deleted",
        "repository",
        "installation",
        "hook_id",
        "action",
        "issue",
        "comment",
    ]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # says nothing about the code
@given(event=st.sampled_from(sorted(names())), payload=st.dictionaries(KEYS, JSON))
def test_any_object_is_understood_or_refused(event: str, payload: dict[str, Any]) -> None:
    try:
        meaning = parse_event(event, json.dumps(payload).encode())
    except PayloadError:
        return
    assert isinstance(meaning, ParsedEvent)
