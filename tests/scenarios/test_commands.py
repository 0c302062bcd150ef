"""Commands, as the people who give them see the answers."""

from __future__ import annotations

from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment
from tests.scenarios.fake_toolchain import BAD
from tests.scenarios.test_pull_requests import last_check, pin


def answers(repository: RepositoryDouble, deployment: Deployment, number: int) -> list[str]:
    """What we wrote under an issue or pull request, without the one comment about the results."""
    ours = [one.body for one in repository.comments(number) if one.author.login == deployment.hub.bot]
    return [body for body in ours if "regress" not in body]


def test_help_and_slips_are_answered_where_they_were_made(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    repository.collaborator("ada", "write")
    number = repository.open_pull({"docs/a.md": "words\n"})
    deployment.wait_until_idle()
    repository.comment(number, "ada", "> /assay stop\n\nThanks!\n/assay hepl")
    repository.comment(number, "ada", "/assay help")
    deployment.wait_until_idle()
    slip, reported = answers(repository, deployment, number)
    assert "did you mean `/assay help`?" in slip
    assert "| `/assay rerun` | Tests the same commit again with the same settings. |" in reported
    assert sorted(one.content for one in repository.reactions) == ["+1", "confused"]


def test_what_is_muted_is_tested_and_not_complained_of(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    repository.collaborator("ada", "maintain")
    number = repository.open_pull({"docs/a.md": "words\n"})
    deployment.wait_until_idle()
    repository.comment(number, "ada", "/assay mute op=Add until=30d we know\n/assay mute op=Conv until=2w")
    deployment.wait_until_idle()
    repository.push_pull(number, pin(BAD))
    deployment.wait_until_idle()
    run = last_check(repository, repository.head("change"))
    assert "muted" in str(run.fields["output"])
    assert [body for body in answers(repository, deployment, number) if "new bug" in body] == []
    repository.merge_pull(number)
    deployment.wait_until_idle()
    assert repository.issues == []


def test_the_same_head_is_tested_again_when_asked(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    repository.collaborator("ada", "admin")
    number = repository.open_pull(pin(BAD))
    deployment.wait_until_idle()
    repository.comment(number, "ada", "/assay rerun")
    deployment.wait_until_idle()
    mine = [one for one in deployment.campaigns(repository.name) if one.pull == number]
    assert [one.state for one in mine] == ["done", "done"]
    assert len({one.head for one in mine}) == 1
    assert mine[1].requested_by == "ada"
