"""The sink of rehearsals: each effect becomes two files, the exact request and the text people would read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bot.errors import InfrastructureError
from bot.github.requests import Request, Sent, checked_target, request_for
from bot.store.outbox import Claimed


class DryRun:
    """Writes `FOLDER/owner/name/KIND-KEY.json` and `.md`; writing again changes nothing."""

    live = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def send(self, effect: Claimed) -> Sent:
        """Writes both files, the request last, so that an effect with a request is complete."""
        request = request_for(effect)
        path = self._path(effect)
        text = {"method": request.method, "path": request.path, "body": request.body}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if effect.resumed:  # whoever began it died, perhaps inside a file
                for part in path.parent.glob(f".{path.stem}.*"):
                    part.unlink(missing_ok=True)
            _write(path.with_suffix(".md"), readable(request))
            _write(path, json.dumps(text, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise InfrastructureError(
                f"cannot write {path}: {error.strerror}; check the folder's permissions and the disk"
            ) from error
        return Sent(path.resolve().as_uri())

    def find(self, effect: Claimed) -> Sent | None:
        """The effect if its request was written."""
        path = self._path(effect)
        return Sent(path.resolve().as_uri()) if path.is_file() else None

    def _path(self, effect: Claimed) -> Path:
        return self.folder / checked_target(effect.target) / f"{effect.kind}-{effect.key}.json"


def readable(request: Request) -> str:
    """The request's body as people would read it on GitHub."""
    body = request.body or {}
    output: dict[str, Any] = body.get("output", {})
    head = [f"# {body.get('title') or output.get('title', '')}"]
    if "conclusion" in body:
        head.append(f"Check `{body['name']}` on `{body['head_sha']}`: **{body['conclusion']}**")
    parts = [body.get("body", ""), output.get("summary", ""), output.get("text", "")]
    return "\n\n".join([*head, *(part.strip("\n") for part in parts if part)]) + "\n"


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
