"""Every command, by everybody, everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from bot.commands.registry import actions
from bot.store.models import CommandState
from tests.bot.commands.kit import BUG_ISSUE, FOREIGN_ISSUE, FORK_PULL, PULL, CommandHarness, make_harness

ROLES = ("none", "read", "triage", "write", "maintain", "admin")
PLACES = {"bug": BUG_ISSUE, "issue": FOREIGN_ISSUE, "pull": PULL, "fork": FORK_PULL}
PULLS, BUGS, EVERYWHERE = {"pull", "fork"}, {"bug"}, {"bug", "issue", "pull", "fork"}
WRITERS = {"write", "maintain", "admin"}
READERS = WRITERS | {"triage"}

#: Command → where it makes sense, and who may say it.
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "/assay help": (EVERYWHERE, READERS),
    "/assay status": (EVERYWHERE, READERS),
    "/assay explain": (BUGS | PULLS, READERS),
    "/assay run": (PULLS, WRITERS),
    "/assay rerun": (PULLS, WRITERS),
    "/assay stop": (PULLS, WRITERS),
    "/assay reduce": (BUGS, WRITERS),
    "/assay bisect": (BUGS, WRITERS),
    "/assay test": (BUGS, WRITERS),
    "/assay propose": (BUGS, WRITERS),
    "/assay rebase": (set(), WRITERS),  # no test is proposed here
    "/assay dup #5": (BUGS, WRITERS),
    "/assay undup": (BUGS, WRITERS),
    "/assay invalid": (BUGS, WRITERS),
    "/assay fixed-by 0123abc": (BUGS, WRITERS),
    "/assay upstream": (set(), WRITERS),  # nothing is held here
    "/assay mute op=Resize until=30d": (EVERYWHERE, WRITERS),
    "/assay unmute op=Resize": (EVERYWHERE, WRITERS),
}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[CommandHarness]:
    made = make_harness(tmp_path)
    yield made
    made.database.close()


def test_the_table_names_every_command() -> None:
    assert {command.split()[1] for command in ALLOWED} == set(actions())


@pytest.mark.parametrize("command", ALLOWED)
def test_who_may_say_it_where(harness: CommandHarness, command: str) -> None:
    places, allowed = ALLOWED[command]
    for role, place in product(ROLES, PLACES):
        _prepare(harness, command)
        harness.advance(minutes=61)  # strangers get one reaction an hour
        harness.roles["somebody"] = role
        comment = harness.say(command, PLACES[place], "somebody")
        harness.worker.run_once()
        (row,) = harness.commands(comment)
        meant = role in allowed and place in places
        assert (row.state == CommandState.DONE.value) == meant, (role, place, row.reason)
        assert (harness.reaction(comment) == "confused") == (not meant), (role, place)


def _prepare(harness: CommandHarness, command: str) -> None:
    """What the command takes back is there each time."""
    if "unmute" in command:
        harness.say("/assay mute op=Resize until=30d", PULL)
    if "undup" in command:
        harness.say("/assay dup #5", BUG_ISSUE)
    harness.worker.run_once()


def test_the_author_of_a_pull_request_may_ask_but_not_act(harness: CommandHarness) -> None:
    requested = harness.say("/assay explain", FORK_PULL, "contributor")
    acted = harness.say("/assay run", FORK_PULL, "contributor")
    harness.worker.run_once()
    assert harness.commands(requested)[0].state == CommandState.DONE.value
    assert harness.commands(acted)[0].state == CommandState.REFUSED.value
    assert harness.services.ran == []
