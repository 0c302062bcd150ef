"""The sources that an overlay does not carry: what they name at a commit.

An overlay is a commit's Python over the binaries of a release. Where the Python asks for a function that only
the commit's native code has, the overlay fails, and a build of the commit does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from bot.toolchains.registry import ToolchainSpec
from bot.toolchains.source_digests import source_of

#: Changed files that are read. Between two releases of TVM 1,000 native files differ, and 500 of Python.
MAX_FILES = 2000
_REMEMBERED = 4  # campaigns run one after another
_REMEMBERED_NEEDS = 512  # commits of a bisection

_File = Mapping[str, Any]  # as `bot.github.changes` has it


@dataclass(frozen=True)
class UnreachableSources:
    """Name → the first file that has it, of the compiler's files that its toolchain does not have.

    Names are words; in quotes, or of modules of the compiler, also several joined by dots.

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


def needed_names(spec: ToolchainSpec) -> frozenset[str]:
    """Names that an overlay's Python has gained since its wheel was released, as has what it does not carry.

    A commit that needs none that a working one does not need most likely works: of TVM's from v0.25.0 to
    v0.26.0, over the wheel 0.26.0, exactly those work. None if the repository has no tag of the release.
    """
    if spec.commit is None or not spec.overlay or not spec.unreachable:
        return frozenset()
    return _needed(spec, spec.commit.sha)


def release_commit(spec: ToolchainSpec) -> str:
    """The commit of the release whose wheel lies below an overlay, "" if the repository has no such tag."""
    commit = spec.commit
    assert commit is not None
    version = spec.requirements[0].partition("==")[2].partition(".post")[0]
    tags = (source_of(commit).tag(commit.target, commit.sha, tag) for tag in (f"v{version}", version))
    return next(filter(None, tags), "")


@lru_cache(maxsize=_REMEMBERED)
def _read(spec: ToolchainSpec, _sha: str, base: str) -> UnreachableSources:
    """Of a spec and its commit: specs of commits with equal Python are equal."""
    names = _Names(spec)
    own = _unreachable(spec, _differences(spec, base, hunks=True)) if base else []
    released = release_commit(spec)
    since = _unreachable(spec, _differences(spec, released)) if released else own
    return UnreachableSources(
        wheel=spec.requirements[0].replace("==", " "),
        gained=names.gained(since),
        changed=names.by_file((file["path"], text) for file in own for text in _changed_lines(file)),
        touched=names.by_file((file["path"], file["new"] or "") for file in own),
    )


@lru_cache(maxsize=_REMEMBERED_NEEDS)
def _needed(spec: ToolchainSpec, _sha: str) -> frozenset[str]:
    released = release_commit(spec)
    if not released:
        return frozenset()
    names, files = _Names(spec), _differences(spec, released, laid=True)
    missing = names.gained(_unreachable(spec, files))
    laid = [file for file in files if any(file["path"].startswith(f"{one.path}/") for one in spec.overlay)]
    return frozenset(missing.keys() & names.gained(laid).keys())


def _differences(spec: ToolchainSpec, before: str, *, laid: bool = False, hunks: bool = False) -> list[_File]:
    """The compiler's files that differ between `before` and the commit.

    laid  those too that the overlay carries
    """
    commit = spec.commit
    assert commit is not None
    paths = [*spec.unreachable, *(one.path for one in spec.overlay if laid)]
    change = source_of(commit).change(
        commit.target, before, commit.sha, paths=paths, max_files=MAX_FILES, hunks=hunks
    )
    return list(change["files"])


def _unreachable(spec: ToolchainSpec, files: Iterable[_File]) -> list[_File]:
    return [file for file in files if spec.is_out_of_reach(file["path"])]


def _changed_lines(file: _File) -> Iterator[str]:
    """The lines of both sides that differ, hunk by hunk."""
    old, new = ((file[side] or "").splitlines() for side in ("old", "new"))
    for old_start, old_count, new_start, new_count in file["hunks"]:
        yield "\n".join(old[old_start - 1 : old_start - 1 + old_count] if old_count else ())
        yield "\n".join(new[new_start - 1 : new_start - 1 + new_count] if new_count else ())


@dataclass(frozen=True)
class _Names:
    """Reads names in the sources of a spec's commit."""

    spec: ToolchainSpec

    def gained(self, files: Iterable[_File]) -> dict[str, str]:
        """Name → file, of the names that these files have, and had not before."""
        before, after = set[str](), dict[str, str]()
        for file in files:
            before.update(self._of(file["old"] or ""))
            module = self._module(file["path"]) if file["old"] is None else ""
            for name in (*self._of(file["new"] or ""), module):
                after.setdefault(name, file["path"])
        return {name: path for name, path in after.items() if name and name not in before}

    def by_file(self, texts: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Name → the first file whose text has it."""
        found: dict[str, str] = {}
        for path, text in texts:
            for name in self._of(text):
                found.setdefault(name, path)
        return found

    def _of(self, text: str) -> set[str]:
        dotted = (joined[0].strip("\"'") for joined in self._joined.finditer(text))
        return {*_WORD.findall(text), *dotted}

    def _module(self, path: str) -> str:
        """The module of a Python file that lies beside those which are laid, "" for any other file."""
        root = next((one.path.removesuffix(one.place) for one in self.spec.overlay), "")
        inside = path.startswith(root) and path.endswith(".py")
        name = path[len(root) :].removesuffix(".py").removesuffix("/__init__") if inside else ""
        return name.replace("/", ".")

    @cached_property
    def _joined(self) -> re.Pattern[str]:
        """Names joined by dots: in quotes, as native functions are registered, and of modules."""
        packages = "|".join(sorted({re.escape(one.place.partition("/")[0]) for one in self.spec.overlay}))
        return re.compile(rf'["\'][A-Za-z_]\w*(?:\.\w+)+["\']|\b(?:{packages})(?:\.\w+)+')


_WORD = re.compile(r"[A-Za-z_]\w*")
