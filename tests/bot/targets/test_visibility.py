"""A repository is shown to everybody only once GitHub itself says that everybody may read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.store import Database, overview, targets
from bot.targets import installations, repositories
from bot.targets.event_filter import EventFilter
from bot.webhooks.intents import CampaignIntent, Ignored, InstallationIntent, RepositoryIntent, RepositoryRef

NAME = "octo/secret"
PUSH = CampaignIntent(
    target=NAME, github_id=1, installation=7, head="1" * 40, base="", ref="refs/heads/main", trigger="push"
)
PUBLICIZED = RepositoryIntent(target=NAME, github_id=1, action="publicized", private=False)
INSTALLED = InstallationIntent(
    target="",
    id=7,
    account="octo",
    action="created",
    permissions={},
    events=(),
    added=(RepositoryRef(name=NAME, github_id=1, private=False),),
)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    made.migrate()
    return made


def shown(database: Database) -> list[str]:
    with database.reading() as session:
        return [one.target.name for one in overview.watched(session, public=True)]


def test_a_fork_for_proposed_tests_is_not_tested(database: Database) -> None:
    received: list[object] = []
    event_filter = EventFilter(lambda _session, intent: received.append(intent), forks=frozenset({NAME}))
    with database.transaction() as session:
        answer = event_filter(session, PUSH)
    assert isinstance(answer, Ignored)
    assert "fork for proposed tests" in answer.why
    assert received == []
    database.close()


def test_no_event_makes_a_repository_public(database: Database) -> None:
    with database.transaction() as session:
        EventFilter(lambda *_: None)(session, PUSH)
        installations.handle(session, INSTALLED)
        repositories.handle(session, PUBLICIZED)
    assert shown(database) == []
    with database.transaction() as session:
        targets.ensure(session, NAME)[0].private = False  # as `repository_sync` does once it has read it
    assert shown(database) == [NAME]
    with database.transaction() as session:
        repositories.handle(
            session, RepositoryIntent(target=NAME, github_id=1, action="privatized", private=True)
        )
    assert shown(database) == []
    database.close()
