"""A bare repository on disk, as GitHub has it: heads, references of pull requests, comparisons."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Fixed, so that commit ids are reproducible.
_BORN = 1_767_225_600  # 2026-01-01T00:00:00Z
_ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
ZERO = "0" * 40


@dataclass(frozen=True)
class Commit:
    """A parsed commit."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: str
    message: str
    at: int


class Git:
    """One bare repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._commits = 0
        self._known: dict[tuple[str, ...], Any] = {}  # results for ids never change

    @classmethod
    def create(cls, path: Path, of: Git | None = None) -> Git:
        """An empty repository, or a fork."""
        path.parent.mkdir(parents=True, exist_ok=True)
        source = ["clone", "--quiet", "--bare", str(of.path)] if of else ["init", "--quiet", "--bare"]
        _git(path.parent, *source, str(path))
        made = cls(path)
        # As on GitHub's server: partial clones, and every commit by its id.
        for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
            made.run("config", key, "true")
        made.run("symbolic-ref", "HEAD", "refs/heads/main")
        return made

    def run(self, *arguments: str, stdin: bytes = b"", failing: bool = False) -> str:
        """The output of a git command; `failing` commands may fail."""
        return _git(self.path, *arguments, stdin=stdin, failing=failing)

    def commit(
        self, files: Mapping[str, str | None], branch: str, message: str, author: str, start: str = ""
    ) -> str:
        """Adds a commit to a branch, which starts at `start` if it is new; None deletes a file."""
        head = self.head(branch) or self.resolve(start)
        self._commits += 1
        who = f"{author} <{author}@example.org> {_BORN + self._commits} +0000"
        lines = [f"commit refs/heads/{branch}", f"author {who}", f"committer {who}", _data(message)]
        if head:
            lines.append(f"from {head}")
        for path, text in files.items():
            lines += [f"D {path}"] if text is None else [f"M 100644 inline {path}", _data(text)]
        self.run("fast-import", "--quiet", "--force", stdin="\n".join([*lines, ""]).encode())
        return self.head(branch)

    def kind(self, sha: str) -> str:
        """The type of an object: commit, tree or blob; "" for none."""
        found = self.run("cat-file", "-t", sha, failing=True) if re.fullmatch("[0-9a-f]{40}", sha) else ""
        return found.strip()

    def tree_with(self, base: str, files: Mapping[str, str]) -> str:
        """The id of a tree with further files."""
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": f"{folder}/index"}
            _git(self.path, "read-tree", base or "--empty", extra=index)
            for path, text in files.items():
                blob = self.run("hash-object", "-w", "--stdin", stdin=text.encode()).strip()
                _git(self.path, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", extra=index)
            return _git(self.path, "write-tree", extra=index).strip()

    def commit_of(self, tree: str, parents: Sequence[str], message: str, author: str, email: str = "") -> str:
        """A commit on no branch."""
        self._commits += 1
        given = [part for one in parents for part in ("-p", one)]
        who = {
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": email or f"{author}@example.org",
            "GIT_AUTHOR_DATE": f"{_BORN + self._commits} +0000",
        }
        return _git(self.path, "commit-tree", tree, *given, "-m", message, extra=who).strip()

    def head(self, branch: str) -> str:
        """The commit of a branch, "" if there is none."""
        return self.resolve(f"refs/heads/{branch}")

    def heads(self) -> dict[str, str]:
        """Branch → commit."""
        listed = self.run("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads")
        return dict(line.rsplit(" ", 1) for line in listed.splitlines())

    def resolve(self, name: str) -> str:
        """The commit of a name or id, "" for none."""
        found = (
            self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", failing=True) if name else ""
        )
        return found.strip()

    def fetch(self, other: Git, sha: str, reference: str) -> None:
        """Fetches a commit and sets a reference to it."""
        if other is not self:
            self.run("fetch", "--quiet", "--no-tags", str(other.path), sha)
        self.point(reference, sha)

    def point(self, reference: str, sha: str) -> None:
        """Sets a reference, also backwards; ZERO deletes it."""
        self.run("update-ref", *(("-d", reference) if sha == ZERO else (reference, sha)))

    def base(self, one: str, other: str) -> str:
        """The merge base, "" for unrelated histories."""
        return self.run("merge-base", one, other, failing=True).strip()

    def read(self, sha: str, path: str) -> bytes | None:
        """A file at a commit."""
        listed = self.run("ls-tree", sha, "--", path)
        if not listed.startswith("100"):
            return None
        return self.run("cat-file", "blob", listed.split()[2]).encode()

    def blob(self, sha: str, path: str) -> str:
        """The id of a file's content at a commit."""
        return self.run("rev-parse", f"{sha}:{path}").strip()

    def describe(self, sha: str) -> Commit:
        """Parses a commit."""
        return self._log("--max-count=1", sha)[0]

    def between(self, base: str, head: str) -> list[Commit]:
        """The commits of head that base lacks, oldest first."""
        return self._log("--reverse", f"{base}..{head}")

    def _log(self, *which: str) -> list[Commit]:
        """Commits by their ids, never by names that move."""
        if which not in self._known:
            reported = self.run("log", "-z", "--format=%H%x1f%T%x1f%P%x1f%an%x1f%at%x1f%B", *which)
            self._known[which] = [_commit(one) for one in reported.split("\0") if one]
        found: list[Commit] = self._known[which]
        return found

    def merge(self, base: str, head: str) -> str | None:
        """The tree of a merge, None for conflicts."""
        if ("merge", base, head) not in self._known:
            reported = self.run("merge-tree", "--write-tree", base, head, failing=True).splitlines()
            self._known["merge", base, head] = reported[0] if len(reported) == 1 else None
        tree: str | None = self._known["merge", base, head]
        return tree

    def join(self, base: str, head: str, message: str) -> str | None:
        """A merge commit on no branch, None for conflicts."""
        tree = self.merge(base, head)
        if tree is None:
            return None
        return self.run("commit-tree", tree, "-p", base, "-p", head, "-m", message).strip()

    def files(self, base: str, head: str) -> list[dict[str, Any]]:
        """Changes since the merge base, in the format of GitHub's pull request files."""
        if (base, head) not in self._known:
            self._known[base, head] = self._files(base, head)
        found: list[dict[str, Any]] = self._known[base, head]
        return found

    def _files(self, base: str, head: str) -> list[dict[str, Any]]:
        start = self.base(base, head) or base
        patches = re.split(r"(?m)^diff --git .*\n", self.run("diff", "-M", start, head))[1:]
        raw = self.run("diff", "-M", "--raw", "--abbrev=40", "-z", start, head).split("\0")
        counts = self.run("diff", "-M", "--numstat", start, head).splitlines()
        found, at = [], 0
        for patch, count in zip(patches, counts, strict=True):
            *_, new, status = raw[at].split(" ")
            renamed = status[0] in "RC"
            added, removed = (0 if one == "-" else int(one) for one in count.split("\t")[:2])
            file = {
                "sha": new,
                "filename": raw[at + 1 + renamed],
                "status": _STATUS[status[0]],
                "additions": added,
                "deletions": removed,
                "changes": added + removed,
            }
            if renamed:
                file["previous_filename"] = raw[at + 1]
            if "@@" in patch:
                file["patch"] = patch[patch.index("@@") :].rstrip("\n")
            found.append(file)
            at += 2 + renamed
        return found


_STATUS = {"A": "added", "M": "modified", "D": "removed", "R": "renamed", "C": "copied", "T": "changed"}


def _commit(reported: str) -> Commit:
    sha, tree, parents, author, at, message = reported.split("\x1f", 5)
    return Commit(sha, tree, tuple(parents.split()), author, message.strip(), int(at))


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def _git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    failing: bool = False,
    extra: Mapping[str, str] | None = None,
) -> str:
    people = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()}
    environment = {"PATH": os.environ["PATH"]} | _ENVIRONMENT | people | dict(extra or {})
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, input=stdin, capture_output=True, check=False
    )
    if done.returncode and not failing:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode()}")
    return done.stdout.decode()


_WHO = {"NAME": "GitHub", "EMAIL": "noreply@github.com", "DATE": f"{_BORN} +0000"}
