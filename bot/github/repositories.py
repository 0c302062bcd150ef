"""Reads files of target repositories at any commit without checkouts.

A mirror (`bot.github.mirrors`) has the history of the requested commits and only the files that were read (a
partial clone, if the server supports it): a compiler's repository is gigabytes, its pins are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from bot.commit_files import Ancestor, CiSource, CommitMessage, TreeFile
from bot.errors import RefusalError, UsageError
from bot.file_lock import file_lock
from bot.github.changes import read_change
from bot.github.git import CorruptMirrorError, Git, NoSuchCommitError, TokenFor
from bot.github.mirrors import lock_path, mirror_path, partial_path
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
from fuzzing.file_trees import discard_tree

MAX_FILE_BYTES = 1 << 20  # configurations and pins are kilobytes
MAX_TAGS = 2_000  # of one pattern; apache/tvm has a hundred of releases
MAX_CHANGED_FILES = 3_000  # as GitHub's list of a pull request's files

# GitHub's own rules: logins of at most 39 letters, digits and hyphens (underscores for managed users).
_TARGET = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,38})/([A-Za-z0-9._-]{1,100})")
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ABBREVIATED = re.compile(r"[0-9a-f]{7,64}")
#: A branch, tag, reference or commit, and how to walk from it: `main~2`, `v1.0^`.
_REVISION = re.compile(
    r"(?P<name>[^\s~^:?*\[\\-][^\s~^:?*\[\\]{0,255})(?P<steps>(?:~\d{0,6}|\^\d{0,2}){0,20})"
)
_TAGS = "refs/assay/tags/"
_FETCHED_AT_ONCE = 1_000  # ids on one command line, 40 kB
_ALL_BRANCHES = "+refs/heads/*:refs/assay/heads/*"

Result = TypeVar("Result")


class Repositories:
    """Repositories of one server, mirrored on demand. Safe for several threads and processes.

    ci  what their workflows built; None without credentials
    """

    def __init__(
        self,
        git_url: str,
        cache_dir: Path,
        token: str | TokenFor | None = None,
        ci: CiSource | None = None,
    ) -> None:
        self.ci = ci
        self._git = Git(git_url, token)
        self._root = cache_dir.absolute()

    def read(self, target: str, sha: str, path: str) -> bytes | None:
        """The content of a file at a commit; None if there is no such file.

        Raises UsageError if it is larger than MAX_FILE_BYTES or an argument is malformed, RefusalError if the
        repository or the commit is inaccessible, InfrastructureError if the network fails.
        """
        _check_path(path)
        return self._with_commit(target, sha, lambda mirror: self._read(target, mirror, sha, path))

    def tree(self, target: str, sha: str, path: str) -> str:
        """The id of a folder's tree, "" if there is none: equal ids mean equal content."""
        if path:
            _check_path(path)
        return self._with_commit(target, sha, lambda mirror: self._tree(mirror, sha, path))

    def files(self, target: str, sha: str, path: str) -> tuple[TreeFile, ...]:
        """Every regular file at or below a folder, "" for all, without links and submodules; fetches their
        contents.
        """
        if path:
            _check_path(path)
        return self._with_commit(target, sha, lambda mirror: self._files(target, mirror, sha, path))

    def blobs(self, target: str, sha: str, ids: Sequence[str]) -> tuple[bytes, ...]:
        """The contents of blobs that `files` listed at this commit, in order."""
        wanted = "".join(f"{one}\n" for one in ids).encode()

        def use(mirror: Path) -> tuple[bytes, ...]:
            output = self._local(target, "cat-file", "--batch", cwd=mirror, stdin=wanted)
            return tuple(parse_blobs(output, ids))

        return self._with_commit(target, sha, use)

    def tag(self, target: str, sha: str, name: str) -> str:
        """The commit that a tag names, "" if there is none; `sha` is any commit of the repository."""

        def use(mirror: Path) -> str:
            self._fetch_tags(target, mirror, re.escape(name) + "$")
            done = self._git.local(
                "rev-parse", "--verify", "--quiet", f"{_TAGS}{name}^{{commit}}", cwd=mirror
            )
            return "" if done.returncode else done.stdout.decode().strip()

        return self._with_commit(target, sha, use)

    def tags(self, target: str, sha: str, pattern: str) -> tuple[str, ...]:
        """The tags that lead to a commit and that a regular expression matches at their beginning."""

        def use(mirror: Path) -> tuple[str, ...]:
            self._fetch_tags(target, mirror, pattern)
            merged = ("for-each-ref", f"--merged={sha}", f"--format=%(refname:lstrip={_TAGS.count('/')})")
            names = self._local(target, *merged, _TAGS, cwd=mirror).decode(errors="replace").split()
            return tuple(name for name in names if re.match(pattern, name))

        return self._with_commit(target, sha, use)

    def history(self, target: str, sha: str, limit: int) -> tuple[Ancestor, ...]:
        """A commit and those that lead to it, newest first."""
        command = history_command(sha, limit)
        return self._with_commit(
            target, sha, lambda mirror: parse_history(self._local(target, *command, cwd=mirror))
        )

    def parents(self, target: str, sha: str) -> tuple[str, ...]:
        """All parents of a commit, the first one first."""
        command = parents_command(sha)
        found = self._with_commit(target, sha, lambda mirror: self._local(target, *command, cwd=mirror))
        return tuple(found.decode().split()[1:])

    def message(self, target: str, sha: str) -> CommitMessage:
        """Author and subject of a commit."""
        command = message_command(sha)
        found = self._with_commit(target, sha, lambda mirror: self._local(target, *command, cwd=mirror))
        return parse_message(sha, found)

    def has(self, target: str, sha: str) -> bool:
        """Whether the repository has this commit; fetches it."""
        try:
            return self._with_commit(target, sha, lambda _: True)
        except NoSuchCommitError:
            return False

    def changed_files(self, target: str, base: str, head: str) -> tuple[str, ...]:
        """The paths that differ between two commits, sorted; at most MAX_CHANGED_FILES of them."""
        _check_sha(base)
        self._with_commit(target, base, lambda _: None)
        return self._with_commit(target, head, lambda mirror: self._changed(target, mirror, base, head))

    def change(self, target: str, base: str, head: str, **limits: Any) -> dict[str, Any]:
        """The change between two commits (`bot.github.changes`), with its limits. Raises as `read` does."""
        _check_sha(base)
        self._with_commit(target, base, lambda _: None)
        return self._with_commit(
            target, head, lambda mirror: self._change(target, mirror, base, head, **limits)
        )

    def commits(self, target: str, base: str, head: str, paths: Sequence[str]) -> tuple[str, ...]:
        """The commits after base up to head that change one of these files, oldest first.

        First parents only: a merge counts as one change. Raises as `read` does.
        """
        _check_sha(base)
        for path in paths:
            _check_path(path)
        self._with_commit(target, base, lambda _: None)
        return self._with_commit(
            target, head, lambda mirror: self._commits(target, mirror, base, head, paths)
        )

    def merge_base(self, target: str, base: str, head: str) -> str:
        """The merge base of two commits; "" for unrelated histories. Raises as `read` does."""
        _check_sha(base)
        self._with_commit(target, base, lambda _: None)
        return self._with_commit(target, head, lambda mirror: self._merge_base(target, mirror, base, head))

    def resolve(self, target: str, revision: str) -> str:
        """The commit id of a branch, tag, reference such as `refs/pull/1/head`, or abbreviated commit.

        `~N` and `^N` may follow. Raises UsageError if there is none; else as `read` does.
        """
        match = _REVISION.fullmatch(revision)
        if match is None:
            raise UsageError(f"{revision[:100]!r} is no revision; name a branch, a tag or a commit")
        start, steps = match["name"], match["steps"]
        sha = start if _SHA.fullmatch(start) else self._advertised(target, start)
        if not sha and _ABBREVIATED.fullmatch(start):
            sha = self._unabbreviated(target, start)
        if not sha:
            raise UsageError(f"{self._url(target)} has no branch, tag or commit {start!r}")

        def use(mirror: Path) -> str:
            wanted = f"{sha}{steps}^{{commit}}"
            done = self._git.local("rev-parse", "--verify", "--quiet", wanted, cwd=mirror)
            if done.returncode:
                raise UsageError(f"{self._url(target)}: {start} has no commit {revision}")
            return done.stdout.decode().strip()

        return self._with_commit(target, sha, use)

    def is_on_branch(self, target: str, commit: str) -> bool:
        """Whether a branch of the repository contains the commit. Raises as `read` does.

        Servers serve commits of forks under the parent's address, so the branches are fetched.
        """

        def use(mirror: Path) -> bool:
            self._fetch_refs(target, mirror, _ALL_BRANCHES, prune=True)
            contains = ("for-each-ref", "--count=1", "--contains", commit, "refs/assay/heads/")
            return bool(self._local(target, *contains, cwd=mirror).strip())

        return self._with_commit(target, commit, use)

    def default_branch(self, target: str) -> str:
        """The default branch; raises RefusalError if the repository is empty."""
        self._mirror(target)
        self._root.mkdir(parents=True, exist_ok=True)
        url = self._url(target)
        output = self._git.remote(target, "ls-remote", "--symref", "--", url, "HEAD", cwd=self._root)
        match = re.search(rb"^ref: refs/heads/(\S+)\tHEAD$", output, re.MULTILINE)
        if not match:
            raise RefusalError(f"{target} has no default branch: it is empty; push a commit first")
        return match[1].decode(errors="replace")

    def _advertised(self, target: str, name: str) -> str:
        """The commit of a branch, a tag or a full reference of the server, "" if it has none of that name."""
        self._mirror(target)
        self._root.mkdir(parents=True, exist_ok=True)
        tried = (f"refs/heads/{name}", f"refs/tags/{name}^{{}}", f"refs/tags/{name}", name)
        listing = self._git.remote(target, "ls-remote", "--", self._url(target), *tried, cwd=self._root)
        pairs = re.findall(r"^(\S+)\t(\S+)$", listing.decode(errors="replace"), re.MULTILINE)
        shas = {ref: sha for sha, ref in pairs}
        return next((shas[ref] for ref in tried if ref in shas), "")

    def _unabbreviated(self, target: str, start: str) -> str:
        """The commit of the server's branches that begins with these digits, "" if there is none."""
        newest = self._advertised(target, "HEAD")

        def use(mirror: Path) -> str:
            self._fetch_refs(target, mirror, _ALL_BRANCHES, prune=True)
            found = self._git.local("rev-parse", "--verify", "--quiet", f"{start}^{{commit}}", cwd=mirror)
            return "" if found.returncode else found.stdout.decode().strip()

        return self._with_commit(target, newest, use) if newest else ""

    def _with_commit(self, target: str, sha: str, use: Callable[[Path], Result]) -> Result:
        """Calls `use` with the mirror once it has the commit; a damaged mirror is rebuilt, once."""
        _check_sha(sha)
        mirror = self._mirror(target)
        with file_lock(lock_path(mirror)):
            try:
                self._fetch(target, mirror, sha)
                return use(mirror)
            except CorruptMirrorError:
                discard_tree(mirror)
                self._fetch(target, mirror, sha)
                return use(mirror)

    def _fetch(self, target: str, mirror: Path, sha: str) -> None:
        self._prepare(target, mirror)
        if self._has_commit(mirror, sha):
            return
        # Fetching the commit itself brings its history and nothing else. A reference protects it from garbage
        # collection and makes later fetches incremental.
        try:
            self._fetch_refs(target, mirror, f"+{sha}:refs/assay/commits/{sha}")
        except NoSuchCommitError:
            self._fetch_refs(target, mirror, _ALL_BRANCHES)
        if not self._has_commit(mirror, sha):
            raise NoSuchCommitError(
                f"{target} has no commit {sha}; a forced push may have removed it: push it again, or test a "
                "newer one"
            )

    def _fetch_refs(self, target: str, mirror: Path, *refspecs: str, prune: bool = False) -> None:
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none")
        further = ("--prune",) if prune else ()
        self._git.remote(target, "fetch", *options, *further, "origin", *refspecs, cwd=mirror)

    def _fetch_tags(self, target: str, mirror: Path, pattern: str) -> None:
        """Fetches the tags that a pattern matches at their beginning, if some are new."""
        listing = self._git.remote(target, "ls-remote", "--tags", "--refs", "origin", cwd=mirror)
        names = re.findall(r"\trefs/tags/(\S+)$", listing.decode(errors="replace"), re.MULTILINE)
        known = self._local(target, "for-each-ref", "--format=%(refname)", _TAGS, cwd=mirror).decode().split()
        new = [one for one in names if re.match(pattern, one) and f"{_TAGS}{one}" not in known]
        if new:
            first, *others = (f"+refs/tags/{one}:{_TAGS}{one}" for one in new[:MAX_TAGS])
            self._fetch_refs(target, mirror, first, *others)

    def _prepare(self, target: str, mirror: Path) -> None:
        if (mirror / "HEAD").is_file():
            return
        partial = partial_path(mirror)  # protected by our lock
        for stale in (mirror, partial):
            discard_tree(stale)
        partial.mkdir(parents=True)
        self._local(target, "init", "--quiet", "--bare", ".", cwd=partial)
        for key, value in (
            ("remote.origin.url", self._url(target)),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
            ("extensions.partialClone", "origin"),
            ("core.repositoryformatversion", "1"),
        ):
            self._local(target, "config", key, value, cwd=partial)
        partial.rename(mirror)

    def _has_commit(self, mirror: Path, sha: str) -> bool:
        return self._git.local("cat-file", "-e", f"{sha}^{{commit}}", cwd=mirror).returncode == 0

    def _read(self, target: str, mirror: Path, sha: str, path: str) -> bytes | None:
        blob = self._blob(target, mirror, sha, path)
        if blob is None:
            return None
        if not self._has_blob(mirror, blob):
            self._git.remote(
                target, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "origin", blob, cwd=mirror
            )
        size = int(self._local(target, "cat-file", "-s", blob, cwd=mirror))
        if size > MAX_FILE_BYTES:
            raise UsageError(f"{path} of {target} is {size} bytes long; at most {MAX_FILE_BYTES} are read")
        return self._local(target, "cat-file", "blob", blob, cwd=mirror)

    def _tree(self, mirror: Path, sha: str, path: str) -> str:
        done = self._git.local("rev-parse", "--verify", "--quiet", f"{sha}:{path}", cwd=mirror)
        return "" if done.returncode else done.stdout.decode().strip()

    def _files(self, target: str, mirror: Path, sha: str, path: str) -> tuple[TreeFile, ...]:
        tree = self._tree(mirror, sha, path)
        if not tree:
            return ()
        objects = ("rev-list", "--objects", "--no-object-names", "--missing=print", tree)
        listing = self._local(target, *objects, cwd=mirror).decode().split()
        missing = [one[1:] for one in listing if one.startswith("?")]
        for at in range(0, len(missing), _FETCHED_AT_ONCE):
            chunk = missing[at : at + _FETCHED_AT_ONCE]
            options = ("--quiet", "--no-tags", "--no-write-fetch-head")
            self._git.remote(target, "fetch", *options, "origin", *chunk, cwd=mirror)
        return parse_files(self._local(target, *LIST_FILES, sha, "--", *filter(None, (path,)), cwd=mirror))

    def _has_blob(self, mirror: Path, blob: str) -> bool:
        return self._git.local("cat-file", "-e", blob, cwd=mirror).returncode == 0

    def _blob(self, target: str, mirror: Path, sha: str, path: str) -> str | None:
        """The object id of a file; None if it is missing or no file (a folder, a link, a submodule)."""
        listing = self._local(target, "--literal-pathspecs", "ls-tree", "-z", sha, "--", path, cwd=mirror)
        for entry in listing.split(b"\0"):
            meta, _, name = entry.partition(b"\t")
            mode, _, rest = meta.partition(b" ")
            if name == path.encode() and mode in (b"100644", b"100755"):
                return rest.split(b" ")[1].decode()
        return None

    def _change(self, target: str, mirror: Path, base: str, head: str, **limits: Any) -> dict[str, Any]:
        def local(*arguments: str, stdin: bytes = b"") -> bytes:
            return self._local(target, *arguments, cwd=mirror, stdin=stdin)

        def fetch(blobs: Sequence[str]) -> None:
            """Fetches missing blobs only: git checks first."""
            options = ("--quiet", "--no-tags", "--no-write-fetch-head")
            self._git.remote(target, "fetch", *options, "origin", *blobs, cwd=mirror)

        return read_change(local, fetch, base, head, **limits)

    def _merge_base(self, target: str, mirror: Path, base: str, head: str) -> str:
        done = self._git.local("merge-base", base, head, cwd=mirror)
        if done.returncode == 1 and not done.stderr:  # git found no merge base
            return ""
        if done.returncode:
            stderr = done.stderr.decode(errors="replace").strip()[-600:]
            raise CorruptMirrorError(f"the mirror of {target} in {mirror} cannot be used: {stderr}")
        return done.stdout.decode().strip()

    def _commits(
        self, target: str, mirror: Path, base: str, head: str, paths: Sequence[str]
    ) -> tuple[str, ...]:
        options = ("--first-parent", "--reverse", "--topo-order")
        command = ("--literal-pathspecs", "rev-list", *options, f"{base}..{head}", "--", *paths)
        return tuple(self._local(target, *command, cwd=mirror).decode().split())

    def _changed(self, target: str, mirror: Path, base: str, head: str) -> tuple[str, ...]:
        options = ("-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
        output = self._local(target, "diff-tree", *options, base, head, "--", cwd=mirror)
        names = sorted(name.decode(errors="replace") for name in output.split(b"\0") if name)
        return tuple(names[:MAX_CHANGED_FILES])

    def _local(self, target: str, *arguments: str, cwd: Path, stdin: bytes = b"") -> bytes:
        done = self._git.local(*arguments, cwd=cwd, stdin=stdin)
        if done.returncode:
            stderr = done.stderr.decode(errors="replace").strip()[-600:]
            raise CorruptMirrorError(f"the mirror of {target} in {cwd} cannot be used: {stderr}")
        return done.stdout

    def _mirror(self, target: str) -> Path:
        _check_target(target)
        return mirror_path(self._root, target)

    def _url(self, target: str) -> str:
        url = f"{self._git.url}/{target}"
        if url.startswith("file:") and not Path(url2pathname(urlsplit(url).path + ".git")).exists():
            return url
        return f"{url}.git"


def _check_target(target: str) -> None:
    match = _TARGET.fullmatch(target)
    if not match or match[2] in (".", "..") or match[2].lower().endswith((".git", ".lock")):
        raise UsageError(f"{target[:200]!r} is no repository; write owner/name")


def _check_sha(sha: str) -> None:
    if not _SHA.fullmatch(sha):
        raise UsageError(f"{sha[:100]!r} is no commit; write all 40 hexadecimal digits, in lower case")


def _check_path(path: str) -> None:
    parts = path.split("/")
    plain = path.isprintable() and len(path) <= 4096
    if not plain or any(part in ("", ".", "..") for part in parts):
        raise UsageError(
            f"{path[:200]!r} is no path inside a repository; write one such as .github/assay.yml"
        )
