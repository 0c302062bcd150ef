"""Talking with Assay: commands are heard from those who may give them, once, and answered politely."""

from __future__ import annotations

import pytest

from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment
from tests.scenarios.fake_toolchain import BAD, OTHER

BREAKS = "This pull request breaks"  # how the one comment of a pull request begins


@pytest.fixture
def pull(deployment: Deployment, repository: RepositoryDouble) -> int:
    """A pull request that breaks something, and was tested; ada may write here."""
    repository.collaborator("ada", "write")
    number = repository.open_pull({"requirements.txt": f"openvino=={BAD}\n"})
    deployment.wait_until_idle()
    return number


def answers(repository: RepositoryDouble, number: int) -> list[str]:
    """What we said that is not the pull request's own comment."""
    ours = [one for one in repository.comments(number) if one.author.type == "Bot"]
    return [one.body for one in ours if "<!-- assay:" in one.body and BREAKS not in one.body]


def test_each_comment_is_answered_once(
    deployment: Deployment, repository: RepositoryDouble, pull: int
) -> None:
    requested = repository.comment(pull, "ada", "Thanks.\n\n/assay help")
    for delivery in [one for one in deployment.hub.deliveries.log if one.event == "issue_comment"]:
        deployment.hub.redeliver(delivery)
    deployment.wait_until_idle()
    (answer,) = answers(repository, pull)
    assert "/assay run" in answer
    assert [one.content for one in repository.reactions if one.comment == requested] == ["+1"]


def test_what_is_no_command_is_not_heard(
    deployment: Deployment, repository: RepositoryDouble, pull: int
) -> None:
    repository.comment(pull, "ada", "> /assay stop\n\nwhat does that do?")
    repository.comment(pull, "ada", "```\n/assay stop\n```")
    repository.comment(pull, deployment.hub.bot, "/assay stop")
    deployment.wait_until_idle()
    assert answers(repository, pull) == []
    assert repository.reactions == []


def test_an_edit_makes_a_comment_a_command_once(
    deployment: Deployment, repository: RepositoryDouble, pull: int
) -> None:
    edited = repository.comment(pull, "ada", "nothing to see")
    for body in ("/assay help", "/assay help\n/assay rerun", "/assay stop"):
        repository.edit_comment(edited, "ada", body)
        deployment.wait_until_idle()
    (answer,) = answers(repository, pull)
    assert "/assay run" in answer
    assert [one.content for one in repository.reactions if one.comment == edited] == ["+1"]
    assert len([one for one in deployment.campaigns(repository.name) if one.pull]) == 1


@pytest.mark.parametrize(("role", "received"), [("triage", False), ("write", True)])
def test_only_those_who_may_write_set_things_going(
    role: str, received: bool, deployment: Deployment, repository: RepositoryDouble
) -> None:
    number = repository.open_pull({"docs/a.md": "words\n"})
    repository.collaborator("bob", role)
    deployment.wait_until_idle()
    before = len(deployment.campaigns(repository.name))
    requested = repository.comment(number, "bob", "/assay rerun")
    deployment.wait_until_idle()
    assert (len(deployment.campaigns(repository.name)) > before) is received
    (reaction,) = [one.content for one in repository.reactions if one.comment == requested]
    assert (reaction == "confused") is not received


def test_a_button_does_what_it_says(deployment: Deployment, repository: RepositoryDouble, pull: int) -> None:
    (run,) = repository.check_runs
    assert "rerun" in [action["identifier"] for action in run.fields["actions"]]
    before = [one for one in deployment.campaigns(repository.name) if one.pull]
    repository.press(run, "rerun", by="ada")
    deployment.wait_until_idle()
    assert len([one for one in deployment.campaigns(repository.name) if one.pull]) == len(before) + 1
    assert {one.fields["status"] for one in repository.check_runs} == {"completed"}


def test_two_commands_at_once_and_a_push_between(
    deployment: Deployment, repository: RepositoryDouble, pull: int
) -> None:
    repository.comment(pull, "ada", "/assay rerun\n/assay status")
    head = repository.push_pull(pull, {"requirements.txt": f"openvino=={OTHER}\n"})
    deployment.wait_until_idle()
    theirs = [one for one in deployment.campaigns(repository.name) if one.pull]
    assert theirs[-1].head == head
    assert theirs[-1].state == "done"
    assert len([one for one in repository.comments(pull) if BREAKS in one.body]) == 1
