"""The sink of dry runs: writes the exact request and the readable text of each effect to files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.errors import InfrastructureError
from bot.github.effects import EffectKind, kind_of
from bot.github.requester import ApiRequester, Page
from bot.github.requests import Request, Sent, checked_target
from bot.github.responses import ApiResponse, NotFoundError
from bot.store.outbox import ClaimedEffect

#: Placeholders in requests for ids that GitHub would return.
UNKNOWN_ID, UNKNOWN_SHA = "{id}", "{sha}"


class _Recorder:
    """Keeps the writes of one effect and answers with placeholders.

    GitHub has no items of any list and no branch of ours; everything else exists.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def read(self, path: str, parameters: Mapping[str, Any]) -> Page:
        """An empty list, or a resource."""
        if "/git/ref/" in path:
            raise NotFoundError(f"{path} does not exist before a dry run")
        return {"value": [] if "per_page" in parameters else _placeholder(), "next": ""}

    def send(self, request: Request, permission: str = "") -> ApiResponse:
        """What GitHub would have created."""
        del permission
        self.requests.append(request)
        return ApiResponse(201, {}, _placeholder())


def _placeholder() -> dict[str, Any]:
    return {"id": UNKNOWN_ID, "sha": UNKNOWN_SHA, "tree": {"sha": UNKNOWN_SHA}}


def _record(kind: EffectKind, effect: ClaimedEffect) -> list[Request]:
    """The requests that publish an effect, the one that people would read first."""
    recorder = _Recorder()
    kind.prepare(ApiRequester(recorder), effect)
    kind.publish(ApiRequester(recorder), effect)
    shown = recorder.requests.pop(kind.shown)
    return [shown, *recorder.requests]


class DryRunSink:
    """Writes `FOLDER/owner/name/KIND-KEY.json` and `.md`; writing again changes nothing.

    Later contents of an editable effect are separate files, `KIND-KEY.2.json` and so on.
    """

    live = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def send(self, effect: ClaimedEffect) -> Sent:
        """Writes both files, the request last, so that its existence means completeness."""
        path = self._path(effect)
        kind = kind_of(effect.kind)
        made = kind.editable and effect.revision > 1 and self._was_written(path, effect)
        requests = _record(kind, replace(effect, remote_id=UNKNOWN_ID if made else ""))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if effect.resumed:  # its first sender died, perhaps while writing
                for part in path.parent.glob(f".{path.stem}.*"):
                    part.unlink(missing_ok=True)
            _write(path.with_suffix(".md"), readable(requests[0]))
            _write(path, json.dumps(_to_json(requests), indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise InfrastructureError(
                f"cannot write {path}: {error.strerror}; check the folder's permissions and the disk"
            ) from error
        return Sent(path.resolve().as_uri())

    def find(self, effect: ClaimedEffect) -> Sent | None:
        """The effect if its request was written."""
        path = self._path(effect)
        return Sent(path.resolve().as_uri()) if path.is_file() else None

    def account(self, target: str) -> str:
        """ "": files have no limits."""
        del target
        return ""

    def _path(self, effect: ClaimedEffect) -> Path:
        revision = f".{effect.revision}" if effect.revision > 1 else ""
        return self.folder / checked_target(effect.target) / f"{effect.kind}-{effect.key}{revision}.json"

    def _was_written(self, path: Path, effect: ClaimedEffect) -> bool:
        """Whether an earlier content was written."""
        stem = f"{effect.kind}-{effect.key}"
        return any(other != path for other in path.parent.glob(f"{stem}*.json"))


def readable(request: Request) -> str:
    """The request's body as rendered on GitHub; the request itself if it has no text."""
    body = request.body or {}
    output: dict[str, Any] = body.get("output", {})
    parts = [body.get("body", ""), output.get("summary", ""), output.get("text", "")]
    title = body.get("title") or output.get("title")
    head = [f"# {title}"] if title else []
    if "conclusion" in body:
        where = f" on `{body['head_sha']}`" if "head_sha" in body else ""
        head.append(f"Check `{body['name']}`{where}: **{body['conclusion']}**")
    if not title and not any(parts):
        values = json.dumps(body, ensure_ascii=False)
        return f"{request.method} {request.path}\n\n{values}\n"
    return "\n\n".join([*head, *(part.strip("\n") for part in parts if part)]) + "\n"


def _to_json(requests: list[Request]) -> dict[str, Any]:
    """The first request, with the following ones under `then`."""
    first, *rest = [{"method": one.method, "path": one.path, "body": one.body} for one in requests]
    return {**first, "then": rest} if rest else first


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
