"""What inductor workers share, so that a restart after a crash does not cost half a minute.

Before its first kernel, a process of torch 2.13 spends 11 s on probing with g++ which instruction sets work
and 9 s on precompiling a header of 150 MB; every further kernel takes a second. Both depend on the machine
and the toolchain, not on a program, and torch itself shares them between processes. Nothing else is shared:
kernels and graphs are in the worker's own folder, which is deleted with it.

The manifest is authoritative. A file that it does not list, or lists with another size, was left by a killed
process: it is never used, and the next writer removes it. The manifest is replaced atomically.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional, Set

from fuzzing.file_trees import discard_tree

_MANIFEST, _DRAFT, _LOCK = "manifest.json", "manifest.draft", "lock"
_MAX_FOLDERS = 3  # of 150 MB each: for this toolchain and its two previous states


def open_header_cache(folder: str) -> HeaderCache:
    """The cache below `folder`, which outlives the worker, for this torch on this machine.

    "" shares nothing. Must be called before inductor compiles anything, with torch imported. Raises
    RuntimeError if no C++ compiler runs.
    """
    from torch._inductor import codecache, cpu_vec_isa

    fingerprint = _fingerprint()
    # Inductor's folder for headers; nothing is shared with releases that do not expose it.
    private = getattr(codecache, "_HEADER_DIR", "")
    if not folder or not private:
        return HeaderCache()
    cache = HeaderCache(Path(folder, fingerprint), Path(private))
    probe = cpu_vec_isa.VecISA.check_build
    cpu_vec_isa.VecISA.check_build = cache.memoize_probe(probe)  # type: ignore[method-assign, assignment]
    return cache


def prepare(cache: HeaderCache) -> None:
    """Does the set-up of a process's first kernel, unless another worker has; others wait meanwhile.

    Results are published step by step, so that a slow machine that runs out of time continues there.
    """
    import torch
    from torch._inductor import cpu_vec_isa

    if cache.link_published():
        return
    with cache.lock():
        if not cache.link_published():
            cpu_vec_isa.pick_vec_isa()
            cache.publish()
            torch.compile(torch.neg, dynamic=False)(torch.zeros(64))
            cache.publish()


class HeaderCache:
    """The precompiled headers and usable instruction sets, shared by all workers.

    shared   folder of published files; None shares nothing
    private  folder where this process's inductor looks for headers and makes them
    """

    def __init__(self, shared: Optional[Path] = None, private: Path = Path()) -> None:
        self._folder = shared or Path()
        self._private = private
        self._probed: Set[str] = set()
        self._shared: Set[str] = set()  # headers that are published
        self.active = shared is not None
        if self.active:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._private.mkdir(parents=True, exist_ok=True)

    def link_published(self) -> bool:
        """Links what other workers have published; returns whether there was a header."""
        if not self.active:
            return False
        manifest = self._manifest()
        self._probed |= set(manifest["probes"])
        for name, size in manifest["headers"].items():
            private = self._private / name
            if _size(self._folder / name) == size and _size(private) < 0:
                private.symlink_to(self._folder / name)
                self._shared.add(name)
        return bool(self._shared)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Excludes other workers from building or publishing; the kernel releases it if the process dies."""
        with contextlib.ExitStack() as stack:
            if self.active:
                file = stack.enter_context(open(self._folder / _LOCK, "w"))
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def is_new(self) -> bool:
        """Whether this worker has made a header that is not published."""
        return self.active and not self._created_headers() <= self._shared

    def publish(self) -> None:
        """Publishes this worker's headers and probes; to be called within `lock`.

        If they cannot be written, sharing stops without an error: a full disk must not fail a case.
        """
        if not self.active:
            return
        try:
            self._publish()
        except OSError as error:
            self.active = False
            sys.stderr.write(f"inductor's headers are not shared with other workers: {error}\n")

    def _publish(self) -> None:
        manifest = self._manifest()
        self._sweep(manifest)
        for name in self._created_headers() - manifest["headers"].keys():
            _copy(self._private / name, self._folder / name)
            manifest["headers"][name] = _size(self._folder / name)
        manifest["probes"] = sorted(self._probed | set(manifest["probes"]))
        draft = self._folder / _DRAFT
        draft.write_text(json.dumps(manifest, indent=1))
        draft.replace(self._folder / _MANIFEST)
        self._shared |= manifest["headers"].keys()
        _prune(self._folder.parent)

    def memoize_probe(self, probe: Callable[[Any, str], bool]) -> Callable[[Any, str], bool]:
        """Memoizes `probe`, inductor's check that code for an instruction set compiles and loads.

        Only success is stored: a failure may be the machine's.
        """

        def memoized(isa: Any, code: str) -> bool:
            key = _digest(code, isa.build_arch_flags(), *isa.build_macro())
            if key not in self._probed and probe(isa, code):
                self._probed.add(key)
            return key in self._probed

        return memoized

    def _manifest(self) -> Dict[str, Any]:
        try:
            found: Dict[str, Any] = json.loads((self._folder / _MANIFEST).read_bytes())
        except (FileNotFoundError, ValueError):  # none yet, or truncated by a power cut
            return {"headers": {}, "probes": []}
        return found

    def _created_headers(self) -> Set[str]:
        """The precompiled headers that this worker has made, and their source texts."""
        names = {path.name for path in self._private.glob("*.gch") if not path.is_symlink()}
        return names | {name[: -len(".gch")] for name in names}

    def _sweep(self, manifest: Dict[str, Any]) -> None:
        """Removes incomplete files and their entries."""
        for name, size in list(manifest["headers"].items()):
            if _size(self._folder / name) != size:
                del manifest["headers"][name]
        for path in self._folder.iterdir():
            if path.name not in (_MANIFEST, _LOCK, *manifest["headers"]):
                path.unlink()


def _fingerprint() -> str:
    """A key of torch, the C++ compiler and the CPU, on which probes and headers depend.

    A header's own name holds a digest of its preprocessed text, which torch checks each time.
    """
    import torch
    from torch._inductor import cpp_builder, exc

    try:
        compiler = cpp_builder.get_cpp_compiler()
    except exc.InvalidCxxCompiler as error:
        raise RuntimeError(
            "inductor needs a C++ compiler to compile for the CPU, and none runs here; install g++, or name "
            f"one by the variable CXX ({error})"
        ) from error
    version = cpp_builder.get_compiler_version_info(compiler)
    return _digest(torch.__version__, str(torch.version.git_version), compiler, version, _cpu())


def _cpu() -> str:
    """The CPU's features as the kernel lists them; "" if it does not."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line for line in file if line.startswith(("flags", "Features"))), "")
    except FileNotFoundError:
        return ""


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _size(path: Path) -> int:
    """Size in bytes, -1 if there is no such file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _copy(source: Path, target: Path) -> None:
    """Copies a file and syncs it before the manifest names it; the folders may be on two file systems."""
    with source.open("rb") as given, target.open("wb") as file:
        shutil.copyfileobj(given, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())


def _prune(folder: Path) -> None:
    """Removes all but the folders last published to. A worker that still uses one only becomes slower."""

    def published(path: Path) -> float:
        manifest = path / _MANIFEST
        return manifest.stat().st_mtime if manifest.exists() else 0.0

    for path in sorted(folder.iterdir(), key=published, reverse=True)[_MAX_FOLDERS:]:
        discard_tree(path)
