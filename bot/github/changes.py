"""The difference between two commits, in the form that `fuzzing.prioritize` reads.

    {"base", "head", "truncated", "files": [{"path", "old_path", "old", "new", "hunks", "binary"}]}

`old` and `new` are texts, None if the file does not exist on that side or was not read. A hunk is [old start,
old lines, new start, new lines], counted from 1. Whatever exceeds the limits is omitted and sets `truncated`.
Source files are omitted last, because they show which operators a commit touches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bot.errors import UsageError
from bot.github.git import CorruptMirrorError, Git

#: Maximal number of files read. A merge of months touches thousands, and its diff does not discriminate.
MAX_FILES = 300
#: Maximal bytes of one file, and of all: the largest converters are 200 kB; generated tables are megabytes.
MAX_FILE_BYTES, MAX_BYTES = 1 << 20, 16 << 20
_CHUNK = 100  # objects requested at a time

_SOURCES = re.compile(r"\.(py[ix]?|c|cc|cpp|cxx|h|hh|hpp|cuh?|inc|inl|td|mlir|def|rs)", re.IGNORECASE)
_FILE_MODES = frozenset({"100644", "100755"})
_NULL_ID = re.compile("0+")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@", re.ASCII)

#: Runs git locally; returns its output.
RunGit = Callable[..., bytes]


@dataclass(frozen=True)
class Entry:
    """A file that differs: its path and the ids of its contents, "" for none.

    old_path  its former path, if it was moved without changes
    """

    path: str
    old: str
    new: str
    old_path: str | None = None


def read_change(
    local: RunGit,
    fetch: Callable[[Sequence[str]], None],
    base: str,
    head: str,
    *,
    paths: Sequence[str] = (),
    max_files: int | None = None,
    hunks: bool = True,
) -> dict[str, Any]:
    """The change from commit `base` to `head`.

    local  runs git in a repository with both commits: (arguments, stdin) → output
    fetch  fetches the contents of these ids if they are missing
    paths  the files and folders that are compared; none for all
    max_files  files that are read, in place of MAX_FILES
    hunks  whether the hunks of files of both commits are listed
    """
    options = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    raw = local("--literal-pathspecs", "diff-tree", *options, base, head, "--", *paths)
    found = list(_moved(_entries(raw.decode(errors="replace"))))
    entries = _first(found, max_files or MAX_FILES)
    ids = list(dict.fromkeys(one for entry in entries for one in (entry.old, entry.new) if one))
    for at in range(0, len(ids), _CHUNK):
        fetch(ids[at : at + _CHUNK])
    contents, complete = _contents(local, entries)
    compared = [entry for entry in entries if hunks and _both(entry, contents)]
    found_hunks = _hunks(local, base, head, compared)
    files = [_file(entry, contents, found_hunks) for entry in entries]
    truncated = len(entries) < len(found) or not complete
    return {"base": base, "head": head, "files": files, "truncated": truncated}


def resolve_range(folder: Path, text: str) -> tuple[str, str]:
    """The commits of BASE..HEAD in a local repository.

    Raises UsageError if it is no range or no repository.
    """
    base, dots, head = text.partition("..")
    if not dots or not base or not head or head.startswith("."):
        raise UsageError(f"--range {text}: write BASE..HEAD, such as HEAD~1..HEAD")
    git = Git(folder.absolute().as_uri(), None)

    def resolve(name: str) -> str:
        done = git.local(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", cwd=folder
        )
        if done.returncode:
            stderr = done.stderr.decode(errors="replace").strip()
            raise UsageError(f"{folder} has no commit {name}; {stderr or 'name one that git knows there'}")
        return done.stdout.decode().strip()

    return resolve(base), resolve(head)


def read_local_change(folder: Path, base: str, head: str) -> dict[str, Any]:
    """The change between two commits of a local repository; raises UsageError if it is damaged."""
    git = Git(folder.absolute().as_uri(), None)

    def local(*arguments: str, stdin: bytes = b"") -> bytes:
        done = git.local(*arguments, cwd=folder, stdin=stdin)
        if done.returncode:
            stderr = done.stderr.decode(errors="replace").strip()[-600:]
            raise UsageError(f"git cannot compare {base} and {head} in {folder}: {stderr}")
        return done.stdout

    return read_change(local, lambda _ids: None, base, head)


def _entries(raw: str) -> Iterator[Entry]:
    """The files of `diff-tree --raw -z`, without links and submodules."""
    fields = iter(raw.split("\0"))
    for meta in fields:
        if not meta:
            return
        path = next(fields)
        old_mode, new_mode, old, new, _ = meta.lstrip(":").split(" ")
        entry = Entry(path, _id(old_mode, old), _id(new_mode, new))
        if entry.old or entry.new:
            yield entry


def _id(mode: str, name: str) -> str:
    return name if mode in _FILE_MODES and not _NULL_ID.fullmatch(name) else ""


def _moved(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Joins the two entries of a file that was moved without changes."""
    found = list(entries)
    gone = {entry.old: entry for entry in found if not entry.new}
    moved = {entry.new for entry in found if not entry.old} & gone.keys()
    for entry in found:
        if entry.old == "" and entry.new in moved:
            yield Entry(entry.path, entry.new, entry.new, gone[entry.new].path)
        elif not (entry.new == "" and entry.old in moved):
            yield entry


def _first(entries: Sequence[Entry], count: int) -> list[Entry]:
    """The `count` most useful entries, in their order."""
    order = {entry.path: at for at, entry in enumerate(entries)}
    best = sorted(entries, key=lambda entry: (not _is_source(entry.path), order[entry.path]))[:count]
    return sorted(best, key=lambda entry: order[entry.path])


def _is_source(path: str) -> bool:
    return _SOURCES.fullmatch(PurePosixPath(path).suffix) is not None


def _contents(local: RunGit, entries: Sequence[Entry]) -> tuple[dict[str, bytes], bool]:
    """Content by id, sources first, and whether everything is within the limits."""
    ids = [one for entry in _by_worth(entries) for one in (entry.old, entry.new) if one]
    chosen, spent = [], 0
    sizes = _sizes(local, list(dict.fromkeys(ids)))
    for name, size in sizes.items():
        if size <= MAX_FILE_BYTES and spent + size <= MAX_BYTES:
            chosen.append(name)
            spent += size
    return _batch(local, chosen), len(chosen) == len(sizes)


def _by_worth(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: not _is_source(entry.path))


def _sizes(local: RunGit, ids: Sequence[str]) -> dict[str, int]:
    if not ids:
        return {}
    output = local(
        "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin="\n".join(ids).encode() + b"\n"
    )
    rows = (line.split(" ") for line in output.decode().splitlines())
    return {name: int(size) for name, size in rows}


def _batch(local: RunGit, ids: Sequence[str]) -> dict[str, bytes]:
    if not ids:
        return {}
    output, at, found = local("cat-file", "--batch", stdin="\n".join(ids).encode() + b"\n"), 0, {}
    for name in ids:
        end = output.index(b"\n", at)
        size = int(output[at:end].split(b" ")[2])
        found[name] = output[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


def _both(entry: Entry, contents: Mapping[str, bytes]) -> bool:
    there = entry.old in contents and entry.new in contents
    return there and entry.old != entry.new


def _hunks(local: RunGit, base: str, head: str, entries: Sequence[Entry]) -> dict[str, list[list[int]]]:
    """Path → hunks, for files of both commits: one patch, whose files are in the entries' order."""
    if not entries:
        return {}
    options = ("-r", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    paths = [entry.path for entry in entries]
    patch = local("--literal-pathspecs", "diff-tree", *options, base, head, "--", *paths)
    found: list[list[list[int]]] = []
    for line in patch.decode(errors="replace").split("\n"):
        if line.startswith("diff --git "):  # lines of a hunk begin with other characters
            found.append([])
        elif (match := _HUNK.match(line)) and found:
            found[-1].append(parse_hunk(match))
    if len(found) != len(paths):
        raise CorruptMirrorError(
            f"git lists {len(found)} files between {base} and {head} instead of {len(paths)}"
        )
    return dict(zip(paths, found, strict=True))


def parse_hunk(match: re.Match[str]) -> list[int]:
    """A hunk's four numbers; omitted counts are 1."""
    return [1 if number is None else int(number) for number in match.groups()]


def match_hunk(line: str) -> re.Match[str] | None:
    """The header of a hunk, if the line is one."""
    return _HUNK.match(line)


def _file(
    entry: Entry, contents: Mapping[str, bytes], hunks: Mapping[str, list[list[int]]]
) -> dict[str, Any]:
    old, new = contents.get(entry.old), contents.get(entry.new)
    binary = any(b"\0" in data for data in (old, new) if data is not None)
    fields = {"path": entry.path, "old_path": entry.old_path, "binary": binary}
    texts = {
        "old": None if old is None or binary else old.decode(errors="replace"),
        "new": None if new is None or binary else new.decode(errors="replace"),
    }
    return fields | texts | {"hunks": [] if binary else hunks.get(entry.path, _whole(entry, texts))}


def _whole(entry: Entry, texts: Mapping[str, str | None]) -> list[list[int]]:
    """The one hunk of a file that was added or deleted."""
    if entry.old and entry.new:
        return []
    lines = {side: len((text or "").splitlines()) for side, text in texts.items()}
    if not any(lines.values()):
        return []
    return [[int(lines["old"] > 0), lines["old"], int(lines["new"] > 0), lines["new"]]]
