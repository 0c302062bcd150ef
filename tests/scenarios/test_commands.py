"""Commands, as the people who give them see the answers."""

from __future__ import annotations

import pytest

from tests.github.people import RepositoryDouble
from tests.scenarios.stage import Stage
from tests.scenarios.test_pull_requests import last_check, pin
from tests.scenarios.toolchain import BAD

pytestmark = pytest.mark.slow


def answers(repository: RepositoryDouble, stage: Stage, number: int) -> list[str]:
    """What we wrote under an issue or pull request, without the one comment about the results."""
    ours = [one.body for one in repository.comments(number) if one.author.login == stage.hub.bot]
    return [body for body in ours if "regress" not in body]


def test_help_and_slips_are_answered_where_they_were_made(stage: Stage, repository: RepositoryDouble) -> None:
    repository.collaborator("ada", "write")
    number = repository.open_pull({"docs/a.md": "words\n"})
    stage.quiet()
    repository.comment(number, "ada", "> /assay stop\n\nThanks!\n/assay hepl")
    repository.comment(number, "ada", "/assay help")
    stage.quiet()
    slip, told = answers(repository, stage, number)
    assert "did you mean `/assay help`?" in slip
    assert "| `/assay rerun` | Tests the same commit once more, as before. |" in told
    assert sorted(one.content for one in repository.reactions) == ["+1", "confused"]


def test_what_is_muted_is_tested_and_not_complained_of(stage: Stage, repository: RepositoryDouble) -> None:
    repository.collaborator("ada", "maintain")
    number = repository.open_pull({"docs/a.md": "words\n"})
    stage.quiet()
    repository.comment(number, "ada", "/assay mute op=Add until=30d we know\n/assay mute op=Conv until=2w")
    stage.quiet()
    repository.push_pull(number, pin(BAD))
    stage.quiet()
    run = last_check(repository, repository.head("change"))
    assert "muted" in str(run.fields["output"])
    assert [body for body in answers(repository, stage, number) if "new bug" in body] == []
    repository.merge_pull(number)
    stage.quiet()
    assert repository.issues == []


def test_the_same_head_is_tested_again_when_asked(stage: Stage, repository: RepositoryDouble) -> None:
    repository.collaborator("ada", "admin")
    number = repository.open_pull(pin(BAD))
    stage.quiet()
    repository.comment(number, "ada", "/assay rerun")
    stage.quiet()
    mine = [one for one in stage.campaigns(repository.name) if one.pull == number]
    assert [one.state for one in mine] == ["done", "done"]
    assert len({one.head for one in mine}) == 1
    assert mine[1].asked_by == "ada"
