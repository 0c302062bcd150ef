"""Check runs: created once for a commit, updated in place, with fifty annotations a request.

GitHub appends the annotations of each request and removes none. Unless the run is new, existing annotations
are read first, so that none is duplicated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from github.CheckRun import CheckRun as Run
from github.Commit import Commit
from github.GithubObject import NotSet

from bot.github.effects.kind import EffectKind, kind
from bot.github.limits import MAX_ANNOTATIONS, MAX_DESCRIPTION, ThrottledError
from bot.github.requester import ApiRequester, raw
from bot.github.requests import Sent
from bot.github.resources import parse_time
from bot.store.outbox import ClaimedEffect

Annotation = Mapping[str, Any]
_TIMES = ("started_at", "completed_at")  # texts of the payload


@kind
class CheckRun(EffectKind):
    """`POST /repos/{owner}/{repo}/check-runs`, then `PATCH …/check-runs/{id}`. Apps only."""

    name = "check_run"
    permission = "checks=write"
    editable = True
    allowed_for_tokens = False

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """Creates or updates the run, all but its commit, with further requests for more annotations."""
        notes = _notes(effect)
        if effect.remote_id:
            run = _run(api, effect, effect.remote_id)
            there = {_identity(raw(one)) for one in run.get_annotations()} if notes else set()
            notes = [one for one in notes if _identity(one) not in there]
            run.edit(**_fields(effect, notes[:MAX_ANNOTATIONS], omit=("head_sha",)))
        else:
            fields = _fields(effect, notes[:MAX_ANNOTATIONS])
            api.repository(effect.target).create_check_run(**fields)
            run = _run(api, effect, self.read_sent(api.answer).remote_id)
        try:
            for batch in _batches(notes[MAX_ANNOTATIONS:]):
                # The output is repeated, because GitHub clears omitted fields.
                run.edit(output=_output(effect, batch))
        except ThrottledError as error:
            error.partially_sent = True
            raise

    def find(self, api: ApiRequester, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our run with our key as its external id."""
        commit = api.repository(effect.target).get_commit(effect.payload["head_sha"])
        for run in map(raw, commit.get_check_runs(check_name=effect.payload["name"], filter="all")):
            by = (run.get("app") or {}).get("slug")
            if run.get("external_id") == effect.key and by in (None, login.removesuffix("[bot]")):
                return self.sent(run)
        return None

    def is_complete(self, effect: ClaimedEffect) -> bool:
        """Whether one request created all of it."""
        return effect.revision == 1 and len(_notes(effect)) <= MAX_ANNOTATIONS


@kind
class CommitStatus(EffectKind):
    """The replacement of a check run for tokens: a state and one line.

    There is no text, annotation or button; the details URL stays. GitHub shows the newest status of each
    context, so a new one replaces the old.
    """

    name = "commit_status"
    permission = "statuses=write"

    def publish(self, api: ApiRequester, effect: ClaimedEffect) -> None:
        """`POST /repos/{owner}/{repo}/statuses/{sha}` from the payload of a check run."""
        run, output = effect.payload, effect.payload.get("output") or {}
        sha, url = run["head_sha"], api.repository(effect.target).get_commit(run["head_sha"]).url
        commit = Commit(api, attributes={"sha": sha}, url=url)  # with its id, or PyGithub reads the commit
        commit.create_status(
            state=_state(run),
            context=run["name"],
            description=str(output.get("title") or "")[:MAX_DESCRIPTION],
            target_url=run.get("details_url") or NotSet,
        )

    def sent(self, answer: Any) -> Sent:
        """Its URL; statuses are never updated, so there is no id."""
        return Sent(str(answer.get("url") or ""))


#: A check run's conclusion → a status's state; a run without one is pending.
_STATES = {
    "success": "success",
    "neutral": "success",
    "skipped": "success",
    "cancelled": "error",
    "stale": "error",
}


def _state(run: Mapping[str, Any]) -> str:
    conclusion = run.get("conclusion")
    return _STATES.get(str(conclusion), "failure") if conclusion else "pending"


def _run(api: ApiRequester, effect: ClaimedEffect, remote_id: str) -> Run:
    """A check run, not read yet; in a dry run the id is no number, as PyGithub's own method demands."""
    return Run(api, url=f"{api.repository(effect.target).url}/check-runs/{remote_id}")


def _notes(effect: ClaimedEffect) -> list[Annotation]:
    """The annotations without duplicates."""
    output = effect.payload.get("output") or {}
    return list({_identity(one): one for one in output.get("annotations") or ()}.values())


def _fields(effect: ClaimedEffect, notes: list[Annotation], omit: tuple[str, ...] = ()) -> dict[str, Any]:
    """The payload as PyGithub's arguments, with these annotations."""
    fields = {name: value for name, value in effect.payload.items() if name not in omit}
    times = {name: parse_time(fields[name]) for name in _TIMES if name in fields}
    return fields | times | ({"output": _output(effect, notes)} if "output" in fields else {})


def _output(effect: ClaimedEffect, notes: list[Annotation]) -> dict[str, Any]:
    """The output with these annotations; without any, the field is omitted."""
    output = {name: value for name, value in effect.payload["output"].items() if name != "annotations"}
    return {**output, "annotations": notes} if notes else output


def _batches(notes: list[Annotation]) -> list[list[Annotation]]:
    return [notes[at : at + MAX_ANNOTATIONS] for at in range(0, len(notes), MAX_ANNOTATIONS)]


def _identity(note: Annotation) -> tuple[object, ...]:
    """Identity of an annotation, from fields that GitHub returns unchanged."""
    where = (note["path"], note["start_line"], note["end_line"], note["annotation_level"])
    return (*where, note.get("title") or "", note["message"])
