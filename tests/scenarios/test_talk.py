"""Talking with Assay: commands are heard from those who may give them, once, and answered politely."""

from __future__ import annotations

import pytest

from tests.github.people import RepositoryDouble
from tests.scenarios.stage import Stage
from tests.scenarios.toolchain import BAD, OTHER

pytestmark = pytest.mark.slow


BREAKS = "This pull request breaks"  # how the one comment of a pull request begins


@pytest.fixture
def pull(stage: Stage, repository: RepositoryDouble) -> int:
    """A pull request that breaks something, and was tested; ada may write here."""
    repository.collaborator("ada", "write")
    number = repository.open_pull({"requirements.txt": f"openvino=={BAD}\n"})
    stage.quiet()
    return number


def answers(repository: RepositoryDouble, number: int) -> list[str]:
    """What we said that is not the pull request's own comment."""
    ours = [one for one in repository.comments(number) if one.author.type == "Bot"]
    return [one.body for one in ours if "<!-- assay:" in one.body and BREAKS not in one.body]


def test_each_comment_is_answered_once(stage: Stage, repository: RepositoryDouble, pull: int) -> None:
    asked = repository.comment(pull, "ada", "Thanks.\n\n/assay help")
    for delivery in [one for one in stage.hub.deliveries.log if one.event == "issue_comment"]:
        stage.hub.redeliver(delivery)
    stage.quiet()
    (answer,) = answers(repository, pull)
    assert "/assay run" in answer
    assert [one.content for one in repository.reactions if one.comment == asked] == ["+1"]


def test_what_is_no_command_is_not_heard(stage: Stage, repository: RepositoryDouble, pull: int) -> None:
    repository.comment(pull, "ada", "> /assay stop\n\nwhat does that do?")
    repository.comment(pull, "ada", "```\n/assay stop\n```")
    repository.comment(pull, stage.hub.bot, "/assay stop")
    silent = repository.comment(pull, "ada", "nothing to see")
    repository.edit_comment(silent, "ada", "/assay stop")
    stage.quiet()
    assert answers(repository, pull) == []
    assert repository.reactions == []


@pytest.mark.parametrize(("role", "heard"), [("triage", False), ("write", True)])
def test_only_those_who_may_write_set_things_going(
    role: str, heard: bool, stage: Stage, repository: RepositoryDouble
) -> None:
    number = repository.open_pull({"docs/a.md": "words\n"})
    repository.collaborator("bob", role)
    stage.quiet()
    before = len(stage.campaigns(repository.name))
    asked = repository.comment(number, "bob", "/assay rerun")
    stage.quiet()
    assert (len(stage.campaigns(repository.name)) > before) is heard
    (reaction,) = [one.content for one in repository.reactions if one.comment == asked]
    assert (reaction == "confused") is not heard


def test_a_button_does_what_it_says(stage: Stage, repository: RepositoryDouble, pull: int) -> None:
    (run,) = repository.check_runs
    assert "rerun" in [action["identifier"] for action in run.fields["actions"]]
    before = [one for one in stage.campaigns(repository.name) if one.pull]
    repository.press(run, "rerun", by="ada")
    stage.quiet()
    assert len([one for one in stage.campaigns(repository.name) if one.pull]) == len(before) + 1
    assert {one.fields["status"] for one in repository.check_runs} == {"completed"}


def test_two_commands_at_once_and_a_push_between(
    stage: Stage, repository: RepositoryDouble, pull: int
) -> None:
    repository.comment(pull, "ada", "/assay rerun\n/assay status")
    head = repository.push_pull(pull, {"requirements.txt": f"openvino=={OTHER}\n"})
    stage.quiet()
    theirs = [one for one in stage.campaigns(repository.name) if one.pull]
    assert theirs[-1].head == head
    assert theirs[-1].state == "done"
    assert len([one for one in repository.comments(pull) if BREAKS in one.body]) == 1
