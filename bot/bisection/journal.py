"""Outcomes of releases, kept between bisections."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzzing.outcomes import Outcome


class Journal:
    """Outcomes by toolchain, appended to FOLDER/KEY.jsonl; KEY is the digest of what else they depend on.

    An incomplete last line, left by a killed writer, is dropped.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        text = json.dumps(identity, sort_keys=True)
        self.path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
        self._known: dict[str, list[Outcome]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            item = json.loads(line)
            self._known.setdefault(item["toolchain"], []).append(Outcome.from_json(item["outcome"]))
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))

    def outcomes(self, toolchain: str) -> list[Outcome]:
        """Outcomes on a toolchain, oldest first."""
        return list(self._known.get(toolchain, ()))

    def add(self, toolchain: str, release: str, outcome: Outcome) -> None:
        """Appends an outcome, on disk before it is used; `release` is for people."""
        self._known.setdefault(toolchain, []).append(outcome)
        line = {"release": release, "toolchain": toolchain, "outcome": outcome.to_json()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
