"""Repositories that are private, renamed, archived, suspended, removed or without issues."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.github.people import RepositoryDouble
from tests.scenarios.stage import Stage
from tests.scenarios.toolchain import BAD, GOOD, OTHER

pytestmark = pytest.mark.slow


def pin(release: str) -> dict[str, str | None]:
    return {"requirements.txt": f"openvino=={release}\n"}


def states(stage: Stage, repository: RepositoryDouble) -> list[str]:
    """How the pull requests' campaigns ended."""
    return [one.state for one in stage.campaigns(repository.name) if one.pull]


def test_a_private_repository_is_read_with_the_installations_token(tmp_path: Path) -> None:
    with Stage(tmp_path, git_over_http=True) as stage:
        repository = stage.repository("octo/secret", private=True)
        repository.open_pull(pin(BAD))
        stage.quiet()
        assert states(stage, repository) == ["done"]
        assert [run.fields["status"] for run in repository.check_runs] == ["completed"]
        assert stage.bugs() == []


def test_a_renamed_repository_goes_on_under_its_new_name(stage: Stage, repository: RepositoryDouble) -> None:
    repository.open_pull(pin(BAD))
    stage.quiet()
    repository.rename("better-name")
    repository.push_pull(1, pin(OTHER))
    stage.quiet()
    assert states(stage, repository) == ["done", "done"]
    assert [run.fields["status"] for run in repository.check_runs] == ["completed"] * 2


def test_a_renamed_repository_keeps_its_one_comment(stage: Stage, repository: RepositoryDouble) -> None:
    repository.open_pull(pin(BAD))
    stage.quiet()
    repository.rename("another-name")
    repository.push_pull(1, pin(OTHER))
    stage.quiet()
    assert len(repository.comments(1)) == 1


def test_a_rename_amid_a_campaign_leaves_one_finished_check(
    stage: Stage, repository: RepositoryDouble
) -> None:
    repository.open_pull(pin(BAD))
    stage.until(lambda: repository.check_runs, "the first check")
    repository.rename("renamed-amid")
    stage.quiet()
    assert [run.fields["status"] for run in repository.check_runs] == ["completed"]
    assert len(repository.comments(1)) == 1


def test_an_issue_is_not_filed_again_under_the_new_name(stage: Stage, repository: RepositoryDouble) -> None:
    repository.commit(pin(BAD))
    stage.quiet()
    filed = [issue.number for issue in repository.issues]
    repository.rename("renamed-with-issues")
    repository.commit({"NOTES.md": "the same again\n"})
    stage.quiet()
    assert filed
    assert [issue.number for issue in repository.issues] == filed


def test_an_archived_repository_is_left_alone(stage: Stage, repository: RepositoryDouble) -> None:
    repository.archive()
    stage.quiet()
    repository.commit(pin(BAD))
    stage.quiet()
    assert (repository.check_runs, repository.issues) == ([], [])


def test_without_issues_the_checks_still_speak(stage: Stage, repository: RepositoryDouble) -> None:
    repository.disable_issues()
    repository.commit(pin(BAD))
    stage.quiet()
    assert repository.issues == []
    assert [run.fields["status"] for run in repository.check_runs] == ["completed"]


def test_a_suspended_app_is_silent_and_comes_back(stage: Stage) -> None:
    repository = stage.repository("suspender/compiler")
    stage.hub.suspend("suspender")
    stage.quiet()
    repository.commit(pin(BAD))
    stage.quiet()
    assert (repository.check_runs, stage.campaigns(repository.name)) == ([], [])
    stage.hub.suspend("suspender", False)
    stage.quiet()
    number = repository.open_pull(pin(GOOD), branch="mend")
    stage.quiet()
    assert [run.fields["status"] for run in repository.check_runs if run.head_sha == repository.head("mend")]
    assert repository.pull(number).state == "open"


def test_a_removed_app_does_nothing_more(stage: Stage) -> None:
    repository = stage.repository("remover/compiler")
    repository.open_pull(pin(BAD))
    stage.until(lambda: repository.check_runs, "the first check")
    stage.hub.uninstall("remover")
    stage.quiet()
    before = [len(repository.check_runs), len(stage.campaigns(repository.name))]
    repository.commit(pin(BAD))
    stage.quiet()
    assert [len(repository.check_runs), len(stage.campaigns(repository.name))] == before
