"""A bug's whole life, as maintainers see it: filed, mended, closed, back again; and what they say counts."""

from __future__ import annotations

from sqlalchemy import select

from bot.store import audit
from bot.store.models import AuditEvent, Bug, BugState
from tests.github.repository_double import RepositoryDouble
from tests.github.state import Issue
from tests.scenarios.deployment import Deployment
from tests.scenarios.fake_toolchain import BAD, GOOD


def pin(release: str, **more: str) -> dict[str, str | None]:
    return {"requirements.txt": f"openvino=={release}\n", **more}


def push(deployment: Deployment, repository: RepositoryDouble, release: str, note: str) -> str:
    """A commit on main, and all that follows from it."""
    sha = repository.commit(pin(release, **{"NOTES.md": note}), message=note)
    deployment.wait_until_idle()
    return sha


def bugs_of(deployment: Deployment, repository: RepositoryDouble) -> dict[str, Bug]:
    """The bugs of a repository by a word of their title."""
    with deployment.database() as database, database.reading() as session:
        rows = list(session.scalars(select(Bug).where(Bug.target == repository.name).order_by(Bug.id)))
        session.expunge_all()
    return {word: row for row in rows for word in ("Add", "Conv", "Div") if word in row.title}


def audit_events_of(deployment: Deployment, bug: Bug) -> list[AuditEvent]:
    with deployment.database() as database, database.reading() as session:
        rows = list(audit.of(session, bug.target, f"bug:{bug.id}"))
        session.expunge_all()
    return rows


def issue_of(repository: RepositoryDouble, word: str) -> Issue:
    (found,) = [issue for issue in repository.issues if word in issue.title]
    return found


def said(repository: RepositoryDouble, issue: Issue) -> list[str]:
    return [comment.body for comment in repository.comments(issue.number)]


def test_from_its_first_day_to_its_return(deployment: Deployment, repository: RepositoryDouble) -> None:
    repository.commit({"NOTES.md": "words"}, message="Say something", quiet=True)
    broke = push(deployment, repository, BAD, "Break it")
    issue = issue_of(repository, "Add")
    assert (issue.state, said(repository, issue)) == ("open", [])
    assert f"Brought by commit {broke[:12]}" in str(issue.body)
    bug = bugs_of(deployment, repository)["Add"]
    assert (bug.state, bug.issue) == (BugState.REPORTED.value, issue.number)

    mended = push(deployment, repository, GOOD, "Mend it")
    assert bugs_of(deployment, repository)["Add"].state == BugState.FIXED.value
    assert said(repository, issue) == [], "one good build is no proof"
    later = push(deployment, repository, GOOD, "Go on")
    issue = issue_of(repository, "Add")
    assert (issue.state, issue.state_reason) == ("closed", "completed")
    (verified,) = said(repository, issue)
    assert mended[:12] in verified
    assert later[:12] in verified
    assert bugs_of(deployment, repository)["Add"].state == BugState.CLOSED.value

    again = push(deployment, repository, BAD, "Break it again")
    issue = issue_of(repository, "Add")
    assert (issue.state, issue.state_reason) == ("open", "reopened")
    _, back = said(repository, issue)
    assert again[:12] in back
    assert len(repository.issues) == 2, "never a second issue of one bug"

    states = [
        act.action
        for act in audit_events_of(deployment, bug)
        if act.action in {state.value for state in BugState}
    ]
    assert states[-5:] == ["reported", "fixed", "verified", "closed", "reported"]
    assert all(act.reason for act in audit_events_of(deployment, bug))
    assert all(row.reason for row in bugs_of(deployment, repository).values())
    assert broke != again


def test_what_is_mended_again_is_closed_again(deployment: Deployment, repository: RepositoryDouble) -> None:
    push(deployment, repository, BAD, "Break it")
    number = issue_of(repository, "Add").number
    for release, note in ((GOOD, "Mend"), (GOOD, "On")):
        push(deployment, repository, release, note)
    assert issue_of(repository, "Add").state == "closed"
    repository.reopen_issue(number)  # a person does not believe it
    deployment.wait_until_idle()
    assert bugs_of(deployment, repository)["Add"].state == BugState.REPORTED.value
    for release, note in ((GOOD, "Look again"), (GOOD, "And on")):
        push(deployment, repository, release, note)
    assert issue_of(repository, "Add").state == "closed"
    assert len(said(repository, issue_of(repository, "Add"))) == 2


def test_what_maintainers_close(deployment: Deployment, repository: RepositoryDouble) -> None:
    push(deployment, repository, BAD, "Break it")
    repository.close_issue(issue_of(repository, "Add").number, reason="not_planned")
    repository.close_issue(issue_of(repository, "Conv").number, reason="completed")
    deployment.wait_until_idle()
    found = bugs_of(deployment, repository)
    assert {found["Add"].state, found["Conv"].state} == {BugState.CLOSED.value}
    push(deployment, repository, GOOD, "Mend it")
    push(deployment, repository, BAD, "Break it again")
    found = bugs_of(deployment, repository)
    meant, undone = issue_of(repository, "Add"), issue_of(repository, "Conv")
    assert (meant.state, said(repository, meant)) == ("closed", [])
    assert (found["Add"].state, found["Add"].resolution) == (BugState.CLOSED.value, "invalid")
    assert (undone.state, len(said(repository, undone))) == ("open", 1)
    assert (found["Conv"].state, found["Conv"].resolution) == (BugState.REPORTED.value, "")


def test_a_held_report_is_withdrawn_and_held_anew(deployment: Deployment) -> None:
    repository = deployment.repository("octo/held-life", mode="held")
    push(deployment, repository, BAD, "Break it")
    assert repository.issues == []
    bug = bugs_of(deployment, repository)["Add"]
    assert (bug.state, bool(bug.reason)) == (BugState.HELD.value, True)
    push(deployment, repository, GOOD, "Mend it")
    bug = bugs_of(deployment, repository)["Add"]
    assert bug.state == BugState.FIXED.value
    push(deployment, repository, BAD, "Break it again")
    bug = bugs_of(deployment, repository)["Add"]
    assert bug.state == BugState.HELD.value
    assert repository.issues == [], "a new life is held like the first"
    repository.collaborator("ada", "write")
    head = repository.head()
    (check,) = [run for run in repository.check_runs if run.head_sha == head]
    assert [one["identifier"] for one in check.fields["actions"]] == ["file"]
    repository.press(check, "file", by="ada")
    deployment.wait_until_idle()
    assert len(repository.issues) == 2
    assert "2 issues approved" in str(check.fields["output"])


def test_a_duplicate_is_told_where_it_belongs(deployment: Deployment, repository: RepositoryDouble) -> None:
    push(deployment, repository, BAD, "Break it")
    first, second = issue_of(repository, "Add"), issue_of(repository, "Conv")
    repository.collaborator("ada", "write")
    repository.comment(second.number, "ada", f"/assay dup #{first.number}")
    deployment.wait_until_idle()
    found = bugs_of(deployment, repository)
    assert found["Conv"].duplicate_of == found["Add"].id
    for release, note in ((GOOD, "Mend"), (GOOD, "On")):
        push(deployment, repository, release, note)
    assert issue_of(repository, "Add").state == "closed"
    push(deployment, repository, BAD, "Break it again")
    assert issue_of(repository, "Add").state == "open"
    assert not any("fails again" in text for text in said(repository, second))


def test_what_people_reported_before_keeps_ours_back(
    deployment: Deployment, repository: RepositoryDouble
) -> None:
    push(deployment, repository, BAD, "Break it")
    title = issue_of(repository, "Conv").title
    other = deployment.repository("octo/reported-before")
    theirs = other.open_issue(title, "I have seen this, too.", author="ada")
    push(deployment, other, BAD, "Break it")
    assert [issue.title for issue in other.issues if "Conv" in issue.title] == [title]
    assert f"#{theirs} is open with the same title" in bugs_of(deployment, other)["Conv"].reason
