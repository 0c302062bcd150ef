"""The life of a bug on GitHub: held, released, filed, talked about, fixed, closed, and back."""

from __future__ import annotations

import pytest

from tests.github.people import RepositoryDouble
from tests.github.state import Issue
from tests.scenarios.stage import Stage
from tests.scenarios.toolchain import BAD, GOOD, OTHER

pytestmark = pytest.mark.slow


def pin(release: str) -> dict[str, str | None]:
    return {"requirements.txt": f"openvino=={release}\n"}


def filed(repository: RepositoryDouble, operator: str) -> Issue:
    (found,) = [issue for issue in repository.issues if operator in issue.title]
    return found


def said(repository: RepositoryDouble, number: int) -> list[str]:
    """What we said under an issue or pull request."""
    return [one.body for one in repository.comments(number) if one.author.type == "Bot"]


@pytest.fixture
def broken(stage: Stage, repository: RepositoryDouble) -> RepositoryDouble:
    """A repository whose default branch has broken Conv, and where that is filed."""
    repository.commit(pin(OTHER))
    stage.quiet()
    return repository


def test_a_bug_that_is_fixed_is_closed_with_its_evidence(stage: Stage, broken: RepositoryDouble) -> None:
    issue = filed(broken, "Conv")
    broken.commit(pin(GOOD))
    stage.quiet()
    broken.commit({"docs/a.md": "words\n"})
    stage.quiet()
    assert (issue.state, issue.state_reason) == ("closed", "completed")
    assert issue.closed_by is not None
    assert issue.closed_by.login == stage.hub.bot
    assert said(broken, issue.number)


def test_a_bug_that_comes_back_is_told_in_its_own_issue(stage: Stage, broken: RepositoryDouble) -> None:
    issue = filed(broken, "Conv")
    for files in (pin(GOOD), {"docs/a.md": "words\n"}, pin(BAD)):
        broken.commit(files)
        stage.quiet()
    assert filed(broken, "Conv") is issue  # not filed a second time
    assert issue.state == "open"
    assert len(said(broken, issue.number)) >= 2


def test_what_a_maintainer_closes_for_good_stays_closed(stage: Stage, broken: RepositoryDouble) -> None:
    issue = filed(broken, "Conv")
    broken.close_issue(issue.number, reason="not_planned")
    stage.quiet()
    before = said(broken, issue.number)
    for release in (GOOD, OTHER):
        broken.commit(pin(release))
        stage.quiet()
    assert issue.state == "closed"
    assert said(broken, issue.number) == before
    assert len(broken.issues) == 1


def test_what_is_held_waits_for_a_word(stage: Stage) -> None:
    repository = stage.repository("octo/held", mode="held")
    repository.collaborator("ada", "write")
    number = repository.open_pull(pin(OTHER))
    stage.quiet()
    repository.merge_pull(number)
    stage.quiet()
    assert repository.issues == []
    assert {run.fields["status"] for run in repository.check_runs} == {"completed"}
    assert len(said(repository, number)) == 1  # the pull request is told at once; only issues are held
