"""Digests of a commit's folders: what a compiler made of them could notice.

Layout and comments of Python files do not count, so that a commit that only formats code is the same
toolchain. Digests are cached by git's ids of files and folders.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot import processes
from bot.commit_files import CommitFiles, TreeFile, TreeSource
from bot.errors import ConfigError, ProvisionError
from bot.file_lock import file_lock
from bot.toolchains import source_digest_script
from fuzzing.execute.sandbox.launch import sandboxed_command

#: Bounds of one overlay. torch's Python sources, the largest, are 3,000 files and 60 MB.
MAX_FILES, MAX_BYTES = 20_000, 256 << 20
_TIMEOUT_S = 300.0
_LINE = re.compile(r"^([0-9a-f]{40,64}) ([0-9a-f]{64})$", re.MULTILINE)


def folder_digest(commit: CommitFiles, path: str, cache: Path | None) -> str:
    """The digest of a folder at a commit; "" if there is none.

    cache  a text file of known digests; None for no cache

    Raises ConfigError if the folder is too large or names files outside of itself, ProvisionError if the
    files cannot be read.
    """
    repository = source_of(commit)
    tree = repository.tree(commit.target, commit.sha, path)
    if not tree:
        return ""
    known = _read(cache)
    if tree not in known:
        files = checked_files(commit, path)
        new = {one.blob: one for one in files if one.blob not in known and one.path.endswith(".py")}
        digests = dict(zip(new, _digest(commit, list(new)), strict=True))
        content = hashlib.sha256()
        for one in files:
            digest = digests.get(one.blob) or known.get(one.blob, one.blob)
            content.update(
                f"{one.path[len(path) :]}\0{one.executable}\0{digest}\n".encode("utf-8", "surrogateescape")
            )
        digests[tree] = content.hexdigest()
        _append(cache, digests)
        known |= digests
    return known[tree]


def source_of(commit: CommitFiles) -> TreeSource:
    """The repository of a commit; raises ConfigError if it is no git repository."""
    if not isinstance(commit.repositories, TreeSource):
        raise ConfigError("there is no git repository to read sources from", key="toolchain.provisioner")
    return commit.repositories


def checked_files(
    commit: CommitFiles, path: str, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> Sequence[TreeFile]:
    """The files of a folder, "" for all, within bounds: a commit is hostile until proven otherwise."""
    files = source_of(commit).files(commit.target, commit.sha, path)
    if len(files) > max_files or sum(one.size for one in files) > max_bytes:
        raise ConfigError(
            f"{path or 'the commit'} has more than {max_files:,} files or {max_bytes >> 20} MB",
            key="toolchain.provisioner",
        )
    prefix = f"{path}/" if path else ""
    for one in files:
        parts = one.path.split("/")
        if not one.path.startswith(prefix) or any(part in ("", ".", "..", ".git") for part in parts):
            raise ConfigError(f"{one.path!r} is no path of a file in {path}", key="toolchain.provisioner")
    return files


def _digest(commit: CommitFiles, blobs: Sequence[str]) -> list[str]:
    """The digests of Python files, parsed behind the walls: a parser is an attack surface."""
    if not blobs:
        return []
    contents = source_of(commit).blobs(commit.target, commit.sha, blobs)
    script = source_digest_script.__file__
    command = sandboxed_command([sys.executable, "-I", "-S", script], writable=[], readable=[script])
    stdin = b"".join(b"%d\n%s" % (len(one), one) for one in contents)
    env = processes.filtered_environment("PATH", "LANG", "LC_*")
    try:
        done = processes.run(
            command, env=env, cwd=Path("/"), timeout=_TIMEOUT_S, stdin=stdin, kill_with_parent=True
        )
    except subprocess.TimeoutExpired:
        raise ProvisionError(f"the sources of {commit.sha[:12]} take too long to parse") from None
    digests = done.stdout.decode().split()
    if done.returncode or len(digests) != len(blobs):
        raise ProvisionError(
            f"the sources of {commit.sha[:12]} cannot be parsed: {processes.tail(done.stderr, lines=2)}"
        )
    return digests


def _read(cache: Path | None) -> dict[str, str]:
    """Git's id → digest; half a line, as after a kill, is skipped."""
    if cache is None or not cache.is_file():
        return {}
    return dict(_LINE.findall(cache.read_text(encoding="ascii", errors="replace")))


def _append(cache: Path | None, digests: Mapping[str, str]) -> None:
    if cache is None:
        return
    cache.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(cache.with_name(cache.name + ".lock")), cache.open("a", encoding="ascii") as file:
        file.write("\n" + "".join(f"{name} {digest}\n" for name, digest in digests.items()))
