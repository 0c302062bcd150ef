"""`assay outbox`: what GitHub refused, and how it is sent once more."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.cli.service import outbox as command
from bot.store import Database, audit, outbox
from bot.store.models import Effect
from bot.store.outbox import EffectDraft
from tests.bot.cli.test_github_commands import assay, result

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
TARGET = "octo/compiler"
WHY = "octo/compiler: GitHub refuses: the conversation is locked; unlock it, then release this"


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    """A data folder: two effects that were refused, and one that waits for its turn."""
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    with database.transaction() as session:
        for key, target in (("a" * 64, TARGET), ("ab" * 32, "octo/other"), ("c" * 64, TARGET)):
            draft = EffectDraft("comment", key, target, {"body": "words"}, number=7, mode="live")
            outbox.post(session, [draft], campaign_id=None, issues_per_day=0, at=AT)
            if key[0] == "a":
                outbox.give_up(session, key, WHY, AT)
    database.close()
    return tmp_path


def states(folder: Path) -> dict[str, str]:
    database = Database(f"sqlite:///{folder}/assay.db")
    with database.reading() as session:
        found = {one.key[:2]: one.state for one in session.query(Effect)}
    database.close()
    return found


def test_what_was_refused_is_listed_with_what_to_do(refused: Path) -> None:
    shown = assay(refused, command.command).out.splitlines()
    assert [line.split()[0] for line in shown] == ["key", "aaaaaaaaaaaa", "abababababab", "after"]
    assert shown[1].endswith(WHY)
    (only,) = result(assay(refused, command.command, "--target", TARGET, "--json"))["failed"]
    assert (only["key"], only["kind"], only["number"]) == ("a" * 64, "comment", 7)


def test_released_it_is_looked_up_before_it_is_sent_again(refused: Path) -> None:
    ran = assay(refused, command.command, "retry", "aa", "--reason", "unlocked")
    assert (ran.code, "queued again" in ran.out) == (0, True)
    assert states(refused) == {"aa": "sending", "ab": "failed", "cc": "pending"}
    database = Database(f"sqlite:///{refused}/assay.db")
    with database.reading() as session:
        (act,) = audit.of(session, TARGET, f"effect:{'a' * 64}")
    database.close()
    assert (act.action, act.actor, act.reason) == ("retried", "operator", "unlocked")
    assert assay(refused, command.command, "retry", "--all").code == 0
    assert states(refused) == {"aa": "sending", "ab": "sending", "cc": "pending"}
    assert assay(refused, command.command).out.startswith("no failed effects")


@pytest.mark.parametrize(
    ("argv", "output"),
    [
        (["retry"], "choose effects"),
        (["retry", "--all", "a"], "choose effects"),
        (["retry", "a"], "2 failed effects begin with 'a'"),
        (["retry", "c"], "no failed effect begins with 'c'"),
        (["--all"], "assay outbox retry KEY"),
    ],
)
def test_what_is_not_meant_is_told(refused: Path, argv: list[str], output: str) -> None:
    ran = assay(refused, command.command, *argv)
    assert ran.code == 2
    assert output in ran.err
    assert states(refused)["aa"] == "failed"
