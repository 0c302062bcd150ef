"""Repositories that are private, renamed, archived, suspended, removed or without issues."""

from __future__ import annotations

from pathlib import Path

from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment
from tests.scenarios.fake_toolchain import BAD, GOOD, OTHER


def pin(release: str) -> dict[str, str | None]:
    return {"requirements.txt": f"openvino=={release}\n"}


def states(deployment: Deployment, repository: RepositoryDouble) -> list[str]:
    """How the pull requests' campaigns ended."""
    return [one.state for one in deployment.campaigns(repository.name) if one.pull]


def test_a_private_repository_is_read_with_the_installations_token(tmp_path: Path) -> None:
    with Deployment(tmp_path, git_over_http=True) as deployment:
        repository = deployment.repository("octo/secret", private=True)
        repository.open_pull(pin(BAD))
        deployment.wait_until_idle()
        assert states(deployment, repository) == ["done"]
        assert [run.fields["status"] for run in repository.check_runs] == ["completed"]
        assert deployment.internal_errors() == []


def test_a_renamed_repository_goes_on_under_its_new_name(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    repository.open_pull(pin(BAD))
    deployment.wait_until_idle()
    repository.rename("better-name")
    repository.push_pull(1, pin(OTHER))
    deployment.wait_until_idle()
    assert states(deployment, repository) == ["done", "done"]
    assert [run.fields["status"] for run in repository.check_runs] == ["completed"] * 2


def test_a_renamed_repository_keeps_its_one_comment(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    repository.open_pull(pin(BAD))
    deployment.wait_until_idle()
    repository.rename("another-name")
    repository.push_pull(1, pin(OTHER))
    deployment.wait_until_idle()
    assert len(repository.comments(1)) == 1


def test_a_rename_amid_a_campaign_leaves_one_finished_check(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    repository.open_pull(pin(BAD))
    deployment.wait_for(lambda: repository.check_runs, "the first check")
    repository.rename("renamed-amid")
    deployment.wait_until_idle()
    assert [run.fields["status"] for run in repository.check_runs] == ["completed"]
    assert len(repository.comments(1)) == 1


def test_an_issue_is_not_filed_again_under_the_new_name(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    repository.commit(pin(BAD))
    deployment.wait_until_idle()
    filed = [issue.number for issue in repository.issues]
    repository.rename("renamed-with-issues")
    repository.commit({"NOTES.md": "the same again\n"})
    deployment.wait_until_idle()
    assert filed
    assert [issue.number for issue in repository.issues] == filed


def test_an_archived_repository_is_left_alone(deployment: Deployment, repository: RepositoryDouble) -> None:
    repository.archive()
    deployment.wait_until_idle()
    repository.commit(pin(BAD))
    deployment.wait_until_idle()
    assert (repository.check_runs, repository.issues) == ([], [])


def test_without_issues_the_checks_still_speak(deployment: Deployment, repository: RepositoryDouble) -> None:
    repository.disable_issues()
    repository.commit(pin(BAD))
    deployment.wait_until_idle()
    assert repository.issues == []
    assert [run.fields["status"] for run in repository.check_runs] == ["completed"]


def test_a_suspended_app_is_silent_and_comes_back(deployment: Deployment) -> None:
    repository = deployment.repository("suspender/compiler")
    deployment.hub.suspend("suspender")
    deployment.wait_until_idle()
    repository.commit(pin(BAD))
    deployment.wait_until_idle()
    assert (repository.check_runs, deployment.campaigns(repository.name)) == ([], [])
    deployment.hub.suspend("suspender", False)
    deployment.wait_until_idle()
    number = repository.open_pull(pin(GOOD), branch="mend")
    deployment.wait_until_idle()
    assert [run.fields["status"] for run in repository.check_runs if run.head_sha == repository.head("mend")]
    assert repository.pull(number).state == "open"


def test_a_removed_app_does_nothing_more(deployment: Deployment) -> None:
    repository = deployment.repository("remover/compiler")
    repository.open_pull(pin(BAD))
    deployment.wait_for(lambda: repository.check_runs, "the first check")
    deployment.hub.uninstall("remover")
    deployment.wait_until_idle()
    before = [len(repository.check_runs), len(deployment.campaigns(repository.name))]
    repository.commit(pin(BAD))
    deployment.wait_until_idle()
    assert [len(repository.check_runs), len(deployment.campaigns(repository.name))] == before
