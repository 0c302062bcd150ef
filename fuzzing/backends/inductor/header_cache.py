"""What one inductor worker leaves to the next, so that a crash does not cost half a minute.

Compiling its first kernel, a process of torch 2.13 spends 11 s on asking g++ which instruction sets it
can be used with, and 9 s on precompiling a header of 150 MB; every further kernel takes a second. Both
depend on the machine and on the toolchain, not on any program, and torch itself shares them between
processes. We share them, too, and nothing else: kernels and graphs live in the worker's own folder and
die with it, so that no program can hide, or meet, what another has left.

The manifest is the truth. A file that it does not name, or names with another size, is what a process
killed at work has left behind: it is never used, and removed by the next one that writes. The manifest
itself is replaced in one step.
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

_MANIFEST, _DRAFT, _LOCK = "manifest.json", "manifest.draft", "lock"
_MAX_FOLDERS = 3  # of 150 MB each: this toolchain's, and those it was before it was last changed


def open_header_cache(folder: str) -> HeaderCache:
    """What is kept below `folder`, which outlives the worker, for this torch on this machine.

    "" keeps nothing. To be called before inductor compiles anything, with torch imported. Raises
    RuntimeError where no C++ compiler runs.
    """
    from torch._inductor import codecache, cpu_vec_isa

    fingerprint = _fingerprint()
    # Where this process's inductor keeps its headers; a release that says it nowhere shares nothing.
    private = getattr(codecache, "_HEADER_DIR", "")
    if not folder or not private:
        return HeaderCache()
    cache = HeaderCache(Path(folder, fingerprint), Path(private))
    probe = cpu_vec_isa.VecISA.check_build
    cpu_vec_isa.VecISA.check_build = cache.memoize_probe(probe)  # type: ignore[method-assign, assignment]
    return cache


class HeaderCache:
    """The precompiled headers and the instruction sets found usable, shared by all workers.

    shared   folder of what is published; None keeps nothing
    private  folder in which this process's inductor looks for headers, and makes them
    """

    def __init__(self, shared: Optional[Path] = None, private: Path = Path()) -> None:
        self._folder = shared or Path()
        self._private = private
        self._probed: Set[str] = set()
        self._shared: Set[str] = set()  # headers that others can use as well as we
        self.active = shared is not None
        if self.active:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._private.mkdir(parents=True, exist_ok=True)

    def link_published(self) -> bool:
        """Takes over what other workers have published; whether there was a header."""
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
        """Within it no other worker builds or publishes; the kernel ends it with the process."""
        with contextlib.ExitStack() as stack:
            if self.active:
                file = stack.enter_context(open(self._folder / _LOCK, "w"))
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def is_new(self) -> bool:
        """Whether this worker has made a header that is not published."""
        return self.active and not self._created_headers() <= self._shared

    def publish(self) -> None:
        """Makes this worker's headers and probes those of all; to be called within `lock`.

        Where that cannot be written, nothing more is shared: no case is to blame for a full disk.
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
        """`probe`, inductor's question whether code for an instruction set compiles and loads, asked once.

        Only a yes is remembered: a no may have been the machine's.
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
        except (FileNotFoundError, ValueError):  # none yet, or one that a power cut has torn
            return {"headers": {}, "probes": []}
        return found

    def _created_headers(self) -> Set[str]:
        """The precompiled headers that this worker has made, and the texts that they were made from."""
        names = {path.name for path in self._private.glob("*.gch") if not path.is_symlink()}
        return names | {name[: -len(".gch")] for name in names}

    def _sweep(self, manifest: Dict[str, Any]) -> None:
        """Forgets and removes what is not whole."""
        for name, size in list(manifest["headers"].items()):
            if _size(self._folder / name) != size:
                del manifest["headers"][name]
        for path in self._folder.iterdir():
            if path.name not in (_MANIFEST, _LOCK, *manifest["headers"]):
                path.unlink()


def _fingerprint() -> str:
    """Names what probes and headers depend on beside their own text: torch, the C++ compiler, the CPU.

    A header's own name holds a digest of its preprocessed text, and torch looks at that anew each time.
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
    """What the kernel says that the CPU can do; "" where it says nothing."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line for line in file if line.startswith(("flags", "Features"))), "")
    except FileNotFoundError:
        return ""


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _size(path: Path) -> int:
    """Its size in bytes, -1 if there is no such file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _copy(source: Path, target: Path) -> None:
    """Copies what must be on the disk before the manifest names it: file systems may be two."""
    with source.open("rb") as given, target.open("wb") as file:
        shutil.copyfileobj(given, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())


def _prune(folder: Path) -> None:
    """Removes all but the folders last published to: a worker that still uses one only gets slower."""

    def published(path: Path) -> float:
        manifest = path / _MANIFEST
        return manifest.stat().st_mtime if manifest.exists() else 0.0

    for path in sorted(folder.iterdir(), key=published, reverse=True)[_MAX_FOLDERS:]:
        shutil.rmtree(path, ignore_errors=True)
