"""Journals: stored classifications of candidates, for resuming a reduction."""

from __future__ import annotations

import json
from pathlib import Path


class Journal:
    """Classifications by a candidate's key, appended to a file; in memory only if there is no file.

    An incomplete last line is dropped.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            key, answer = json.loads(line)
            self._known[key] = answer
        if len(whole) < len(data):
            with path.open("r+b") as file:
                file.truncate(len(whole))

    def get(self, key: str) -> str | None:
        """The classification of a candidate; None if it is not known."""
        return self._known.get(key)

    def put(self, key: str, answer: str) -> None:
        """Writes a classification to disk before it is used."""
        self._known[key] = answer
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, answer]) + "\n")
