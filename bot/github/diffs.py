"""Parses unified diffs, as `git diff` and `diff -u` print them, into changes (`bot.github.changes`).

A diff contains only the lines around changes. Each side's text is therefore sparse: known lines are at their
numbers, the others are empty. This suffices to see which names were touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bot.errors import UsageError
from bot.github.changes import MAX_FILES, match_hunk, parse_hunk

_NO_FILE = "/dev/null"
#: Hunks beyond this line belong to no source file, and would create as many empty lines.
_MAX_LINE = 1_000_000
_MAX_LINES = 5_000_000  # of all files together: each gap becomes empty lines


@dataclass
class _File:
    """A file of a diff while it is parsed; `named` is the path that its first line repeats."""

    named: str = ""
    old_path: str = ""
    new_path: str = ""
    hunks: list[list[int]] = field(default_factory=list)
    binary: bool = False
    old: dict[int, str] = field(default_factory=dict)
    new: dict[int, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.new_path or self.old_path or (self.named if self.binary else "")

    def to_json(self) -> dict[str, Any]:
        path = self.path
        moved = bool(self.new_path and self.old_path) and self.old_path != self.new_path
        return {
            "path": path,
            "old_path": self.old_path if moved else None,
            "old": _sparse(self.old) if self.old_path and self.hunks else None,
            "new": _sparse(self.new) if self.new_path and self.hunks else None,
            "hunks": self.hunks,
            "binary": self.binary,
        }


def parse_unified_diff(text: str) -> dict[str, Any]:
    """The change of a unified diff; raises UsageError if there is none."""
    files: list[dict[str, Any]] = []
    count = lines = 0
    for one in _files(text):
        if not one.path:
            continue
        count += 1
        lines += max(one.old, default=0) + max(one.new, default=0)
        if lines > _MAX_LINES:
            raise UsageError(f"the files of the diff have more than {_MAX_LINES} lines; split the diff")
        if count <= MAX_FILES:
            files.append(one.to_json())
    if not files:
        raise UsageError("this is no unified diff: it names no file; make one with: git diff BASE HEAD")
    return {"base": "", "head": "", "files": files, "truncated": count > MAX_FILES}


def _files(text: str) -> Iterator[_File]:
    present: _File | None = None
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("diff --git "):
            if present is not None:
                yield present
            present = _File(named=_doubled_path(line.removeprefix("diff --git ")))
        elif line.startswith("--- "):
            if present is None or present.hunks:
                if present is not None:
                    yield present
                present = _File()
            present.old_path = _path(line)
        elif present is not None:
            _header(present, line, lines)
    if present is not None:
        yield present


def _header(file: _File, line: str, lines: Iterator[str]) -> None:
    """Parses a header line, or a whole hunk."""
    if line.startswith("+++ "):
        file.new_path = _path(line)
    elif line.startswith(("rename from ", "copy from ")):
        file.old_path = line.split(" ", 2)[2]
    elif line.startswith(("rename to ", "copy to ")):
        file.new_path = line.split(" ", 2)[2]
    elif line.startswith(("Binary files ", "GIT binary patch")):
        file.binary = True
    elif (match := match_hunk(line)) is not None:
        hunk = parse_hunk(match)
        if max(hunk) > _MAX_LINE:
            raise UsageError(f"a hunk of {file.new_path or file.old_path} begins behind line {_MAX_LINE}")
        _read_hunk(file, hunk, lines)
        _place_heading(file, hunk, line[match.end() :].strip())


def _read_hunk(file: _File, hunk: list[int], lines: Iterator[str]) -> None:
    """Reads a hunk's lines; stores its numbers without context."""
    at_old, old_left, at_new, new_left = hunk
    at_old, at_new = at_old + (not old_left), at_new + (not new_left)  # an empty side is at the line before
    touched: list[tuple[int, int, bool, bool]] = []  # positions on both sides, and whether each has the line
    while old_left > 0 or new_left > 0:
        line = next(lines, None)
        if line is None:
            raise UsageError(f"the diff of {file.new_path or file.old_path} breaks off inside a hunk")
        mark, content = line[:1], line[1:]
        gone, come = mark == "-", mark == "+"
        if gone or come:
            touched.append((at_old, at_new, gone, come))
        if mark != "\\":  # "\ No newline at end of file"
            if not come:
                file.old[at_old] = content
                at_old, old_left = at_old + 1, old_left - 1
            if not gone:
                file.new[at_new] = content
                at_new, new_left = at_new + 1, new_left - 1
    file.hunks += _hunks_without_context(touched)


def _place_heading(file: _File, hunk: list[int], heading: str) -> None:
    """Puts git's heading of a hunk, the line of the class or function around it, on the line before.

    Where that line is known or there is none, nothing changes. The heading's own place is not told; that it
    is before the hunk, and nothing in between, is all that an outline needs.
    """
    for known, start in ((file.old, hunk[0] - 1), (file.new, hunk[2] - 1)):
        if heading and start > 0 and start not in known:
            known[start] = heading


def _hunks_without_context(touched: list[tuple[int, int, bool, bool]]) -> list[list[int]]:
    """Hunks without context, one for each run of changed lines."""
    hunks: list[list[int]] = []
    for old, new, gone, come in touched:
        last = hunks[-1] if hunks else None
        if last is None or (old, new) != (last[0] + last[1], last[2] + last[3]):
            last = [old, 0, new, 0]
            hunks.append(last)
        last[1] += gone
        last[3] += come
    return [[old - (not n), n, new - (not m), m] for old, n, new, m in hunks]


def _path(line: str) -> str:
    """The path of a `---` or `+++` line, "" for /dev/null."""
    path = line[4:].split("\t")[0].strip().strip('"')
    if path == _NO_FILE:
        return ""
    return path[2:] if path.startswith(("a/", "b/")) else path


def _doubled_path(text: str) -> str:
    """The path in "a/path b/path"."""
    half = len(text) // 2
    return text[2:half] if text[2:half] == text[half + 3 :] else ""


def _sparse(lines: dict[int, str]) -> str:
    return "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1)) + "\n"
