"""Parses what git prints about trees and blobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.commit_files import Ancestor, CommitMessage, TreeFile

#: The listing that `parse_files` reads; the contents must be there, as their sizes are listed.
LIST_FILES = ("--literal-pathspecs", "ls-tree", "-r", "-z", "-l", "--full-tree")
_FILE_MODES = ("100644", "100755")


def parse_files(listing: bytes) -> tuple[TreeFile, ...]:
    """The regular files of a listing."""
    found = []
    for entry in filter(None, listing.split(b"\0")):
        meta, _, name = entry.partition(b"\t")
        mode, _, blob, size = meta.decode().split()
        if mode in _FILE_MODES:
            path = name.decode("utf-8", "surrogateescape")
            found.append(TreeFile(path, mode == _FILE_MODES[1], blob, int(size)))
    return tuple(found)


def parse_blobs(output: bytes, ids: Sequence[str]) -> Iterator[bytes]:
    """The contents of blobs, from the output of `git cat-file --batch`, in the order of `ids`."""
    begin = 0
    for _ in ids:
        end = output.index(b"\n", begin)
        size = int(output[begin:end].split(b" ")[2])
        yield output[end + 1 : end + 1 + size]
        begin = end + size + 2


def history_command(sha: str, limit: int) -> tuple[str, ...]:
    """What git is asked for `parse_history`."""
    return ("rev-list", f"--max-count={limit}", "--date-order", "--no-commit-header", "--format=%H %ct", sha)


def parse_history(output: bytes) -> tuple[Ancestor, ...]:
    """Commits with the times of their committers."""
    lines = (line.split() for line in output.decode().splitlines())
    return tuple(Ancestor(sha, float(at)) for sha, at in lines)


def message_command(sha: str) -> tuple[str, ...]:
    """What git is asked for `parse_message`."""
    return ("show", "--no-patch", "--format=%an%x00%s", sha)


def parse_message(sha: str, output: bytes) -> CommitMessage:
    """Author and subject."""
    author, _, subject = output.decode(errors="replace").strip("\n").partition("\0")
    return CommitMessage(sha, author, subject)


def parents_command(sha: str) -> tuple[str, ...]:
    """What git is asked for a commit's parents: it prints the commit and them."""
    return ("rev-list", "--parents", "--max-count=1", sha)
