"""The sources that an overlay does not carry: what they name at a commit.

An overlay is a commit's Python over the binaries of a release. Where the Python asks for a function that only
the commit's native code has, the overlay fails, and a build of the commit does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bot.toolchains.registry import ToolchainSpec
from bot.toolchains.source_digests import source_of

#: Changed files that are read. Between two releases of TVM 740 native files differ, of 11 MB.
MAX_FILES = 1000
_REMEMBERED = 4  # campaigns run one after another
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")


@dataclass(frozen=True)
class UnreachableSources:
    """Name → the first file that has it, of the compiler's files that its toolchain does not have.

    A dotted name counts whole, and each of its parts alone.

    wheel    what the toolchain has in their place, such as "apache-tvm 0.26.0"
    gained   names that those files have at the commit, and had not when the wheel was released
    changed  names on lines that differ between base and the commit
    touched  names in files that differ between base and the commit
    """

    wheel: str = ""
    gained: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    touched: Mapping[str, str] = field(default_factory=dict)


def read_unreachable_sources(spec: ToolchainSpec, base: str) -> UnreachableSources:
    """What the sources out of the toolchain's reach name, of a commit's overlay; of anything else nothing.

    base  the commit with which it is compared, "" for none

    Where the repository has no tag of the release, what base names counts in its place.
    """
    if spec.commit is None or not spec.overlay or not spec.unreachable:
        return UnreachableSources()
    return _read(spec, spec.commit.sha, base)


@lru_cache(maxsize=_REMEMBERED)
def _read(spec: ToolchainSpec, _sha: str, base: str) -> UnreachableSources:
    """Of a spec and its commit: specs of commits with equal Python are equal."""
    own = _differences(spec, base) if base else []
    released = release_commit(spec)
    since = _differences(spec, released) if released else own
    before = set[str]()
    for file in since:
        before.update(_names(file["old"] or ""))
    after = _by_file((file["path"], file["new"] or "") for file in since)
    return UnreachableSources(
        wheel=spec.requirements[0].replace("==", " "),
        gained={name: path for name, path in after.items() if name not in before},
        changed=_by_file((file["path"], text) for file in own for text in _changed_lines(file)),
        touched=_by_file((file["path"], file["new"] or "") for file in own),
    )


def release_commit(spec: ToolchainSpec) -> str:
    """The commit of the release whose wheel lies below an overlay, "" if the repository has no such tag."""
    commit = spec.commit
    assert commit is not None
    version = spec.requirements[0].partition("==")[2].partition(".post")[0]
    tags = (source_of(commit).tag(commit.target, commit.sha, tag) for tag in (f"v{version}", version))
    return next(filter(None, tags), "")


def _differences(spec: ToolchainSpec, before: str) -> list[dict[str, Any]]:
    """The files out of reach that differ between `before` and the commit (`bot.github.changes`)."""
    commit = spec.commit
    assert commit is not None
    change = source_of(commit).change(
        commit.target, before, commit.sha, paths=spec.unreachable, max_files=MAX_FILES
    )
    return [file for file in change["files"] if spec.is_out_of_reach(file["path"])]


def _changed_lines(file: Mapping[str, Any]) -> Iterator[str]:
    """The lines of both sides that differ, hunk by hunk."""
    old, new = ((file[side] or "").splitlines() for side in ("old", "new"))
    for old_start, old_count, new_start, new_count in file["hunks"]:
        yield "\n".join(old[old_start - 1 : old_start - 1 + old_count] if old_count else ())
        yield "\n".join(new[new_start - 1 : new_start - 1 + new_count] if new_count else ())


def _by_file(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, text in texts:
        for name in _names(text):
            found.setdefault(name, path)
    return found


def _names(text: str) -> Iterator[str]:
    for match in _NAME.finditer(text):
        yield match[0]
        if "." in match[0]:
            yield from match[0].split(".")
