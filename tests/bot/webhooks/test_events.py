"""What events mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.webhooks import CampaignIntent
from bot.webhooks.events import Meaning, PayloadError, interpret, names

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
        head=NEW,
        base=OLD,
        ref="refs/heads/main",
        trigger="push",
        installation=42,
    )
    assert interpret("push", push()) == Meaning(intents=(intent,))


def test_a_new_branch_has_no_base() -> None:
    (intent,) = interpret("push", push(before=ZERO)).intents
    assert isinstance(intent, CampaignIntent)
    assert intent.base == ""


def test_a_repository_webhook_names_no_installation() -> None:
    (intent,) = interpret("push", push(installation=None)).intents
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
    assert interpret("push", push(**changes)) == Meaning(note=note, ignored=True)


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
        interpret("push", push(**changes))
    assert f"the push payload does not fit: {field}: " in str(caught.value)


def test_ping_and_installation_are_recorded() -> None:
    assert interpret("ping", b'{"zen": "Design for failure.", "hook_id": 9}') == Meaning(
        note="webhook 9 works"
    )
    body = {
        "action": "created",
        "installation": {"id": 3, "account": {"login": "octo-org"}},
        "repositories": [{"full_name": f"octo-org/r{n}"} for n in range(12)],
    }
    note = interpret("installation", json.dumps(body).encode()).note
    assert note.startswith("installation 3 of octo-org: created (octo-org/r0, octo-org/r1")
    assert note.endswith("and 2 more)")


def test_other_events_are_ignored_with_the_reason() -> None:
    assert interpret("star", b"{}") == Meaning(note="nothing is done about 'star' events", ignored=True)
    assert names() >= {"push", "ping", "installation"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(
    ["ref", "before", "after", "deleted", "repository", "installation", "hook_id", "action"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # says nothing about the code
@given(event=st.sampled_from(sorted(names())), payload=st.dictionaries(KEYS, JSON))
def test_any_object_is_understood_or_refused(event: str, payload: dict[str, Any]) -> None:
    try:
        meaning = interpret(event, json.dumps(payload).encode())
    except PayloadError:
        return
    assert isinstance(meaning, Meaning)
