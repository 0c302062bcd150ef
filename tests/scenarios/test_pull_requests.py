"""Pull requests, as the people who open and merge them see Assay."""

from __future__ import annotations

import time

from tests.github.repository_double import RepositoryDouble
from tests.github.state import CheckRun
from tests.scenarios.deployment import Deployment
from tests.scenarios.fake_toolchain import BAD, GOOD, OTHER


def pin(release: str) -> dict[str, str | None]:
    return {"requirements.txt": f"openvino=={release}\n"}


def last_check(repository: RepositoryDouble, sha: str) -> CheckRun:
    """The check of a commit; there is never more than one."""
    (run,) = [run for run in repository.check_runs if run.head_sha == sha]
    return run


def test_a_pull_request_is_checked_from_its_first_moment(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    def message() -> list[tuple[str, str]]:
        return [(one.method, one.body["status"]) for one in deployment.requests(repository, "check-runs")]

    with deployment.block_toolchains():
        number = repository.open_pull(pin(BAD))
        deployment.wait_for(
            lambda: "in_progress" in {status for _, status in message()}, "the check in progress"
        )
    deployment.wait_until_idle()
    head = repository.head("change")
    run = last_check(repository, head)
    assert message()[0] in (("POST", "queued"), ("POST", "in_progress"))  # only the latest content is sent
    assert message()[-1] == ("PATCH", "completed")
    assert run.fields["status"] == "completed"
    assert [one.number for one in repository.pulls] == [number]


def ends(deployment: Deployment, repository: RepositoryDouble) -> list[str]:
    """The states of the pull requests' campaigns, the oldest first."""
    return [one.state for one in deployment.campaigns(repository.name) if one.pull]


def test_a_later_push_supersedes(deployment: Deployment, repository: RepositoryDouble) -> None:
    with deployment.block_toolchains():
        number = repository.open_pull(pin(BAD))
        deployment.wait_for(lambda: repository.check_runs, "the first check")
        first = repository.head("change")
        second = repository.push_pull(number, pin(OTHER))
        deployment.wait_for(lambda: len(ends(deployment, repository)) == 2, "the second commit's campaign")
    deployment.wait_until_idle()
    assert ends(deployment, repository) == ["superseded", "done"]
    assert first != second
    states = {run.head_sha: run.fields["status"] for run in repository.check_runs}
    assert states.get(second) == "completed"
    assert set(states.values()) == {"completed"}
    assert len(repository.comments(number)) == 1


def test_closing_ends_the_work(deployment: Deployment, repository: RepositoryDouble) -> None:
    with deployment.block_toolchains():
        number = repository.open_pull(pin(BAD))
        deployment.wait_for(lambda: repository.check_runs, "the first check")
        repository.close_pull(number)
        deployment.wait_for(lambda: ends(deployment, repository) == ["superseded"], "the campaign's end")
    deployment.wait_until_idle()
    assert ends(deployment, repository) == ["superseded"]
    (run,) = repository.check_runs
    assert run.fields["status"] == "completed"


def await_next_second(deployment: Deployment) -> None:
    """A comment of the second of a push may be older than the push: GitHub's times are whole seconds."""
    begin = int(time.time())
    deployment.wait_for(lambda: int(time.time()) > begin, "the next second")


def test_a_stranger_must_be_let_in(deployment: Deployment, repository: RepositoryDouble) -> None:
    fork = repository.fork("eve")
    number = repository.open_pull(pin(BAD), fork=fork, branch="evil")
    deployment.wait_until_idle()
    assert deployment.campaigns(repository.name) == []
    (run,) = repository.check_runs
    assert run.fields["conclusion"] in ("action_required", "neutral")
    assert "/assay run" in str(run.fields["output"])
    repository.collaborator("ada", "write")
    await_next_second(deployment)
    repository.comment(number, "eve", "/assay run")  # who may not say so is not heard
    deployment.wait_until_idle()
    assert [one for one in deployment.campaigns(repository.name) if one.pull] == []
    repository.comment(number, "ada", "/assay run")
    deployment.wait_until_idle()
    assert [one.state for one in deployment.campaigns(repository.name) if one.pull] == ["done"]
    repository.push_pull(number, pin(OTHER))  # for the head that was let in, and for no other
    deployment.wait_until_idle()
    assert len([one for one in deployment.campaigns(repository.name) if one.pull]) == 1


def test_a_merged_regression_becomes_issues(deployment: Deployment, repository: RepositoryDouble) -> None:
    number = repository.open_pull(pin(BAD))
    deployment.wait_until_idle()
    assert repository.issues == []  # what a pull request breaks is told there, not in issues
    repository.merge_pull(number)
    deployment.wait_until_idle()
    titles = sorted(issue.title for issue in repository.issues)
    assert len(titles) == 2
    assert "Add" in titles[0]
    assert "Conv" in titles[1]
    assert {issue.author.login for issue in repository.issues} == {deployment.hub.bot}
    assert all("assay" in issue.labels for issue in repository.issues)


def test_in_dry_run_nobody_hears_anything(deployment: Deployment) -> None:
    quiet = deployment.repository("octo/dry-run", mode="dry-run")
    number = quiet.open_pull(pin(BAD))
    deployment.wait_until_idle()
    quiet.merge_pull(number)
    deployment.wait_until_idle()
    assert [one.state for one in deployment.campaigns(quiet.name) if one.pull] == ["done"]
    assert (quiet.check_runs, quiet.issues, quiet.comments(number)) == ([], [], [])


def test_what_was_broken_before_is_no_news(deployment: Deployment) -> None:
    repository = deployment.repository("octo/no-news")
    number = repository.open_pull({"docs/a.md": "only words\n"})
    deployment.wait_until_idle()
    assert repository.comments(number) == []
    assert all(run.fields["conclusion"] != "failure" for run in repository.check_runs)
    assert repository.record.git.read(repository.head(), "requirements.txt") == f"openvino=={GOOD}\n".encode()


def test_what_is_held_waits_for_a_word(deployment: Deployment) -> None:
    repository = deployment.repository("octo/held", mode="held")
    repository.collaborator("ada", "write")
    number = repository.open_pull(pin(OTHER))
    deployment.wait_until_idle()
    repository.merge_pull(number)
    deployment.wait_until_idle()
    assert repository.issues == []
    assert {run.fields["status"] for run in repository.check_runs} == {"completed"}
    assert len(repository.comments(number)) == 1  # the pull request is told at once; only issues are held
