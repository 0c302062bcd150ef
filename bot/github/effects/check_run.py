"""Check runs: created once for a commit, updated in place, with fifty annotations a request.

GitHub appends the annotations of each request and removes none. Unless the run is new, existing annotations
are read first, so that none is duplicated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bot.github.client import Client
from bot.github.effects.kind import EffectKind, kind, omit, with_remote_id
from bot.github.limits import MAX_ANNOTATIONS, MAX_DESCRIPTION, ThrottledError
from bot.github.requests import Request, Sent, checked_target
from bot.store.outbox import ClaimedEffect

Annotation = Mapping[str, Any]


@kind
class CheckRun(EffectKind):
    """`POST /repos/{owner}/{repo}/check-runs`, then `PATCH …/check-runs/{id}`. Apps only."""

    name = "check_run"
    permission = "checks=write"
    editable = True
    allowed_for_tokens = False

    def create(self, effect: ClaimedEffect) -> Request:
        """Creates the run with its first annotations."""
        notes = _notes(effect)[:MAX_ANNOTATIONS]
        return Request("POST", _runs(effect), _with_annotations(effect.payload, notes))

    def change(self, effect: ClaimedEffect) -> Request:
        """Updates the run with its content and first annotations; its commit cannot change."""
        return self._change(effect, _notes(effect)[:MAX_ANNOTATIONS])

    def requests(self, effect: ClaimedEffect) -> list[Request]:
        """The run, then requests for the other annotations."""
        first = super().requests(effect)
        made = effect if effect.remote_id else replace(effect, remote_id="{id}")
        return first + [self._add(made, batch) for batch in _batches(_notes(effect)[MAX_ANNOTATIONS:])]

    def send(self, client: Client, effect: ClaimedEffect) -> Sent:
        """Creates or updates the run, with further requests for more annotations."""
        notes = _notes(effect)
        if effect.remote_id:
            there = {_identity(one) for one in self._existing_annotations(client, effect)} if notes else set()
            notes = [one for one in notes if _identity(one) not in there]
            first = self._change(effect, notes[:MAX_ANNOTATIONS])
        else:
            first = self.create(effect)
        sent = self.read_sent(client.send(first, self.permission).data)
        try:
            for batch in _batches(notes[MAX_ANNOTATIONS:]):
                client.send(self._add(with_remote_id(effect, sent), batch), self.permission)
        except ThrottledError as error:
            error.partially_sent = True
            raise
        return sent

    def find(self, client: Client, effect: ClaimedEffect, login: str) -> Sent | None:
        """Our run with our key as its external id."""
        path = f"/repos/{checked_target(effect.target)}/commits/{effect.payload['head_sha']}/check-runs"
        for run in client.pages(path, "check_runs", check_name=effect.payload["name"], filter="all"):
            by = (run.get("app") or {}).get("slug")
            if run.get("external_id") == effect.key and by in (None, login.removesuffix("[bot]")):
                return self.sent(run)
        return None

    def is_complete(self, effect: ClaimedEffect) -> bool:
        """Whether one request created all of it."""
        return effect.revision == 1 and len(_notes(effect)) <= MAX_ANNOTATIONS

    def _change(self, effect: ClaimedEffect, notes: list[Annotation]) -> Request:
        body = _with_annotations(omit(effect.payload, "head_sha"), notes)
        return Request("PATCH", f"{_runs(effect)}/{effect.remote_id}", body)

    def _add(self, effect: ClaimedEffect, notes: list[Annotation]) -> Request:
        """Adds annotations. The output is repeated, because GitHub clears omitted fields."""
        body = _with_annotations({"output": effect.payload["output"]}, notes)
        return Request("PATCH", f"{_runs(effect)}/{effect.remote_id}", body)

    def _existing_annotations(self, client: Client, effect: ClaimedEffect) -> Iterable[Annotation]:
        return client.pages(f"{_runs(effect)}/{effect.remote_id}/annotations")


@kind
class CommitStatus(EffectKind):
    """The replacement of a check run for tokens: a state and one line.

    There is no text, annotation or button; the details URL stays. GitHub shows the newest status of each
    context, so a new one replaces the old.
    """

    name = "commit_status"
    permission = "statuses=write"

    def create(self, effect: ClaimedEffect) -> Request:
        """`POST /repos/{owner}/{repo}/statuses/{sha}` from the payload of a check run."""
        run, output = effect.payload, effect.payload.get("output") or {}
        body = {
            "state": _state(run),
            "context": run["name"],
            "description": str(output.get("title") or "")[:MAX_DESCRIPTION],
        }
        if run.get("details_url"):
            body["target_url"] = run["details_url"]
        return Request("POST", f"/repos/{checked_target(effect.target)}/statuses/{run['head_sha']}", body)

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


def _runs(effect: ClaimedEffect) -> str:
    return f"/repos/{checked_target(effect.target)}/check-runs"


def _notes(effect: ClaimedEffect) -> list[Annotation]:
    """The annotations without duplicates."""
    output = effect.payload.get("output") or {}
    return list({_identity(one): one for one in output.get("annotations") or ()}.values())


def _with_annotations(payload: Mapping[str, Any], notes: list[Annotation]) -> dict[str, Any]:
    """The payload with these annotations; without any, the field is omitted."""
    if "output" not in payload:
        return dict(payload)
    output = omit(payload["output"], "annotations")
    return {**payload, "output": {**output, "annotations": notes} if notes else output}


def _batches(notes: list[Annotation]) -> list[list[Annotation]]:
    return [notes[at : at + MAX_ANNOTATIONS] for at in range(0, len(notes), MAX_ANNOTATIONS)]


def _identity(note: Annotation) -> tuple[object, ...]:
    """Identity of an annotation, from fields that GitHub returns unchanged."""
    where = (note["path"], note["start_line"], note["end_line"], note["annotation_level"])
    return (*where, note.get("title") or "", note["message"])
