"""A change as the bot writes it: the files of a compiler that differ between two commits, and the lines.

    {"base": sha, "head": sha, "truncated": bool, "files": [
        {"path": str, "old_path": str | null, "old": text | null, "new": text | null, "binary": bool,
         "hunks": [[old_start, old_lines, new_start, new_lines], …]}, …]}

Lines count from 1, as in `git diff`. The content comes from an untrusted repository: large parts are cut and
marked, malformed ones raise UsageError, and nothing is executed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzing.errors import UsageError

MAX_FILES = (
    # files of one change; a larger commit is a mass edit, with little information about any one operator
    1_000
)
MAX_TEXT = 1_000_000  # characters of one file: three times the longest source file of the supported compilers
MAX_TOTAL = 16_000_000  # characters of all files together
MAX_HUNKS = 2_000  # of one file
_MAX_COMPARED = 400  # lines of a hunk compared one by one, in quadratic time


@dataclass(frozen=True)
class Hunk:
    """A range of lines, `start` counted from 1, on both sides; a side with 0 lines is empty."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


@dataclass(frozen=True)
class FileChange:
    """One file: its path at head (at base, if it is deleted), its texts if known, and its hunks."""

    path: str
    old_path: str | None = None
    old: str | None = None
    new: str | None = None
    hunks: tuple[Hunk, ...] = ()
    binary: bool = False

    def changed(self) -> tuple[frozenset[int], frozenset[int]]:
        """The differing lines, at base and at head; without a hunk's context if the texts are known."""
        old, new = (None if text is None else text.split("\n") for text in (self.old, self.new))
        hunks = self.hunks or tuple(_whole_file_hunk(old, new))
        gone: set[int] = set()
        come: set[int] = set()
        for hunk in hunks:
            before, after = _changed_lines(hunk, old, new)
            gone |= before
            come |= after
        return frozenset(gone), frozenset(come)


@dataclass(frozen=True)
class Change:
    """The difference between two commits; `truncated` if it is incomplete."""

    files: tuple[FileChange, ...]
    base: str = ""
    head: str = ""
    truncated: bool = False

    @classmethod
    def from_json(cls, obj: Any) -> Change:
        """The change of a JSON object; raises UsageError for anything else."""
        try:
            given = list(obj["files"])
            files, left = [], MAX_TOTAL
            for item in given[:MAX_FILES]:
                file = _file(item, left)
                left -= len(file.old or "") + len(file.new or "")
                files.append(file)
            truncated = bool(obj.get("truncated", False)) or len(given) > MAX_FILES or left <= 0
            return cls(tuple(files), str(obj.get("base", "")), str(obj.get("head", "")), truncated)
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
            raise UsageError(f"this is no change: {error!r}; `assay prioritize --diff` writes one") from None


def read(path: Path) -> Change:
    """The change in a file; raises UsageError if it cannot be read."""
    try:
        return Change.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the change {path}: {error}") from None


def _file(obj: Any, left: int) -> FileChange:
    old_path = obj.get("old_path")
    hunks = tuple(_hunk(item) for item in list(obj.get("hunks") or ())[:MAX_HUNKS])
    texts = [_text(obj.get(side), left) for side in ("old", "new")]
    return FileChange(
        path=str(obj["path"]),
        old_path=None if old_path is None else str(old_path),
        old=texts[0],
        new=texts[1],
        hunks=hunks,
        binary=bool(obj.get("binary", False)),
    )


def _text(value: Any, left: int) -> str | None:
    if value is None or len(str(value)) > min(MAX_TEXT, left):
        return None
    return str(value)


def _hunk(item: Any) -> Hunk:
    numbers = [int(number) for number in item]
    if len(numbers) != 4 or min(numbers) < 0 or max(numbers) > MAX_TEXT:
        raise ValueError(f"a hunk is [old_start, old_lines, new_start, new_lines], not {item!r:.80}")
    return Hunk(*numbers)


def _whole_file_hunk(old: list[str] | None, new: list[str] | None) -> Iterator[Hunk]:
    """The one hunk of a file without hunks."""
    if old is not None or new is not None:
        yield Hunk(1, len(old or ()), 1, len(new or ()))


def _changed_lines(hunk: Hunk, old: list[str] | None, new: list[str] | None) -> tuple[set[int], set[int]]:
    """The differing lines of a hunk; all of it if a text is missing or it is too long to compare."""
    before = _line_range(hunk.old_start, hunk.old_lines, old)
    after = _line_range(hunk.new_start, hunk.new_lines, new)
    if old is None or new is None:
        return set(before), set(after)
    left = [old[line - 1] for line in before]
    right = [new[line - 1] for line in after]
    head = _common_prefix(left, right)
    left, right = left[head:], right[head:]
    tail = _common_prefix(left[::-1], right[::-1])
    before, after = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(before), len(after)) > _MAX_COMPARED:
        return set(before), set(after)
    gone, come = set(before), set(after)
    matcher = difflib.SequenceMatcher(None, left[: len(before)], right[: len(after)], autojunk=False)
    for block in matcher.get_matching_blocks():
        gone -= set(before[block.a : block.a + block.size])
        come -= set(after[block.b : block.b + block.size])
    return gone, come


def _line_range(start: int, lines: int, text: list[str] | None) -> range:
    end = start + lines
    return range(max(start, 1), end if text is None else min(end, len(text) + 1))


def _common_prefix(left: list[str], right: list[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
