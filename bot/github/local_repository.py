"""Reads a local git repository without checkouts and without changing it.

The uncommitted working tree is a commit, too: `WORKTREE` is a commit object in an object folder of ours, with
a fixed author and date, so that equal files give equal commits.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from bot import processes
from bot.commit_files import Ancestor, CommitMessage, TreeFile
from bot.errors import InfrastructureError, UsageError
from bot.github.changes import read_change
from bot.github.git import base_environment
from bot.github.trees import (
    LIST_FILES,
    history_command,
    message_command,
    parents_command,
    parse_blobs,
    parse_files,
    parse_history,
    parse_message,
)

WORKTREE = "WORKTREE"
_TIMEOUT_S = 120.0
_SHA = re.compile(r"[0-9a-f]{40,64}")
_COMMIT_VARIABLES = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "Assay"), ("EMAIL", "assay@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}


class LocalRepository:
    """Reads commits of a repository. Objects for `WORKTREE` are written to `objects`, not to the repository.

    Raises UsageError if `folder` is not a git repository.
    """

    #: It has no name on a server.
    target = ""

    def __init__(self, folder: Path, objects: Path) -> None:
        self._folder = folder.absolute()
        self._objects = objects.absolute()
        self._objects.mkdir(parents=True, exist_ok=True)
        found = self._try("rev-parse", "--path-format=absolute", "--git-path", "objects")
        if found.returncode:
            raise UsageError(
                f"--repo {folder}: not a git repository; give the folder of a checkout or a mirror"
            )
        self._repository_objects = found.stdout.decode().strip()

    @cached_property
    def newest(self) -> str:
        """The revision that is tested unless another is named: of a bare repository HEAD."""
        bare = self._run("rev-parse", "--is-bare-repository").strip() == b"true"
        return "HEAD" if bare else WORKTREE

    def resolve(self, revision: str) -> str:
        """The commit id of `revision`; raises UsageError if there is none."""
        if revision == WORKTREE:
            return self._commit_worktree()
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        done = self._try(*arguments)
        if done.returncode:
            raise UsageError(f"{self._folder} has no commit {revision!r}; `git fetch` it, or name another")
        return done.stdout.decode().strip()

    def parent(self, sha: str) -> str:
        """The first parent; raises UsageError for a root commit or the edge of a shallow clone."""
        return self.resolve(f"{sha}^")

    def parents(self, sha: str) -> tuple[str, ...]:
        """All parents, the first one first."""
        return tuple(self._run(*parents_command(sha)).decode().split()[1:])

    def merge_base(self, one: str, other: str) -> str:
        """The commit at which two lines parted, "" if they have none in common."""
        done = self._try("merge-base", one, other)
        return "" if done.returncode else done.stdout.decode().strip()

    def message(self, sha: str) -> CommitMessage:
        """Author and subject of a commit."""
        return parse_message(sha, self._run(*message_command(sha)))

    def read(self, _target: str, sha: str, path: str) -> bytes | None:
        """The content of a file at a commit; None if there is no such file."""
        done = self._try("cat-file", "blob", f"{sha}:{path}")
        return None if done.returncode else done.stdout

    def tree(self, _target: str, sha: str, path: str) -> str:
        """The id of a folder's tree, "" if there is none: equal ids mean equal content."""
        done = self._try("rev-parse", "--verify", "--quiet", f"{sha}:{path}")
        return "" if done.returncode else done.stdout.decode().strip()

    def files(self, _target: str, sha: str, path: str) -> tuple[TreeFile, ...]:
        """Every regular file at or below a folder, "" for all, without links and submodules."""
        return parse_files(self._run(*LIST_FILES, sha, "--", *filter(None, (path,))))

    def blobs(self, _target: str, _sha: str, ids: Sequence[str]) -> tuple[bytes, ...]:
        """The contents of blobs, in order."""
        output = self._run("cat-file", "--batch", stdin="".join(f"{one}\n" for one in ids).encode())
        return tuple(parse_blobs(output, ids))

    def tag(self, _target: str, _sha: str, name: str) -> str:
        """The commit of a tag, "" if there is none."""
        done = self._try("rev-parse", "--verify", "--quiet", f"refs/tags/{name}^{{commit}}")
        return "" if done.returncode else done.stdout.decode().strip()

    def tags(self, _target: str, sha: str, pattern: str) -> tuple[str, ...]:
        """The tags that lead to a commit and that a regular expression matches."""
        listing = self._run("tag", "--merged", sha).decode(errors="replace")
        return tuple(name for name in listing.split() if re.match(pattern, name))

    def changed_files(self, _target: str, base: str, head: str) -> tuple[str, ...]:
        """The paths that differ between two commits."""
        output = self._run("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head)
        return tuple(name.decode("utf-8", "surrogateescape") for name in output.split(b"\0") if name)

    def change(self, _target: str, base: str, head: str, **limits: Any) -> dict[str, Any]:
        """The change between two commits, in the form of `bot.github.changes`, and with its limits."""
        return read_change(self._run_local, lambda _ids: None, base, head, **limits)

    def commits(self, _target: str, base: str, head: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Commits after base up to head that change one of these paths; first parents only, oldest first."""
        options = ("--first-parent", "--reverse", "--topo-order")
        return tuple(self._run("rev-list", *options, f"{base}..{head}", "--", *paths).decode().split())

    def history(self, _target: str, sha: str, limit: int) -> tuple[Ancestor, ...]:
        """A commit and those that lead to it, newest first."""
        return parse_history(self._run(*history_command(sha, limit)))

    def default_branch(self, _target: str) -> str:
        """The branch that is checked out."""
        return self._run("rev-parse", "--abbrev-ref", "HEAD").decode().strip()

    def _commit_worktree(self) -> str:
        """A commit of the working tree with untracked, without ignored files."""
        with tempfile.TemporaryDirectory(prefix="assay-index-") as folder:
            extra = {**_COMMIT_VARIABLES, "GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._run("read-tree", "HEAD", extra=extra)
            self._run("add", "--all", "--", ":/", extra=extra)
            tree = self._run("write-tree", extra=extra).decode().strip()
            command = ("commit-tree", tree, "-p", "HEAD", "-m", "Uncommitted working tree")
            return self._run(*command, extra=extra).decode().strip()

    def _run_local(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return self._run(*arguments, stdin=stdin)

    def _run(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        done = self._try(*arguments, stdin=stdin, extra=extra)
        if done.returncode:
            raise UsageError(
                f"git {arguments[0]} fails in {self._folder}: {processes.tail(done.stderr, lines=2)}"
            )
        return done.stdout

    def _try(
        self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        objects = (
            {
                "GIT_OBJECT_DIRECTORY": str(self._objects),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": self._repository_objects,
            }
            if hasattr(self, "_repository_objects")
            else {}
        )
        # The repository may belong to another user; naming it here is consent.
        own = base_environment({"safe.directory": "*"}) | objects | dict(extra or {})
        env = processes.filtered_environment("PATH", "TMPDIR", extra=own)
        try:
            return processes.run(
                ["git", *arguments], env=env, cwd=self._folder, timeout=_TIMEOUT_S, stdin=stdin
            )
        except FileNotFoundError as error:
            raise UsageError(
                f"--repo {self._folder}: no such folder, or git is not installed: {error}"
            ) from None
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"git {arguments[0]} in {self._folder} did not end within {_TIMEOUT_S:g} s"
            ) from None
