"""A backend for tests: the program is a line of text that says how to misbehave, and in which phase."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fuzzing.backends.base import AblationLevel, Backend, Named, register
from fuzzing.cases.programs import Program
from fuzzing.cases.values import Tensor, Value
from fuzzing.execute.protocol import _MAGIC, _PREFIX, MAX_BLOB, pack
from fuzzing.execute.protocol import _PAGE as PAGE

_corrupted: list[str] = []  # what a case of this process has spoilt for the next ones


@register
class Misbehaving(Backend):
    name: ClassVar[str] = "misbehaving"
    package: ClassVar[str] = "numpy"
    import_name: ClassVar[str] = "numpy"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"load": ("", "raise", "segfault", "hang")}
    ablation: ClassVar[tuple[AblationLevel, ...]] = (AblationLevel({"load": ""}, "everything"),)
    sticky: ClassVar[tuple[str, ...]] = (r"device \d+ is lost",)

    def load(self, device: str, options: dict[str, Any]) -> None:
        if options.get("load") == "raise":
            raise ImportError("no such compiler here")
        if options.get("load"):
            _do(options["load"])
        self._served = 0

    def convert(self, program: Program, inputs: Named) -> Any:
        phase, _, action = program.to_bytes().decode().partition(":")
        if phase == "convert":
            _do(action)
        return phase, action

    def compile(self, model: Any) -> Any:
        phase, action = model
        if phase == "compile":
            _do(action)
        return model

    def run(self, executable: Any, inputs: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
        phase, action = executable
        if phase == "run":
            _do(action)
        self._served += 1
        if action == "nonsense":
            return [("nonsense", _Nonsense())]
        facts = {
            "pid": os.getpid(),
            "served": self._served,
            "secret": os.environ.get("ASSAY_TEST_SECRET") is not None,
            "home": Path.home().name.startswith("assay-worker-"),
        }
        return [*inputs, *((key, Tensor.of(np.array(int(value)))) for key, value in facts.items())]


class _Nonsense(Tensor):
    """A tensor whose parts do not fit one another."""

    def __init__(self) -> None:
        for name, value in {"dtype": "float32", "shape": (3,), "data": b"x"}.items():
            object.__setattr__(self, name, value)


class _MumbledError(Exception):
    """One that cannot say what it is."""

    def __str__(self) -> str:
        raise KeyError("text")


class _CrashesWhenFreed:
    def __del__(self) -> None:
        ctypes.string_at(0)


def _write_to_pipes(data: bytes) -> None:
    """Writes to every descriptor that there is, the supervisor's pipe among them."""
    for fd in range(3, 64):
        try:
            os.write(fd, data)
        except OSError:
            continue


def _close_pipes() -> None:
    """As a process does that dies, before it is dead."""
    for fd in range(3, 64):
        with contextlib.suppress(OSError):
            if str(Path(f"/proc/self/fd/{fd}").readlink()).startswith("pipe:"):
                os.close(fd)


def _until(path: str) -> None:
    """Waits for a file."""
    while not Path(path).exists():
        time.sleep(0.01)


class _Converter:
    def convert(self, value: str) -> int:
        def number() -> int:
            return int(value)

        return number()


def _do(action: str) -> None:
    kind, _, rest = action.partition(" ")
    if kind == "raise":
        raise ValueError(rest)
    if kind == "convert":
        _Converter().convert(rest)
    if kind == "foreign":  # as TVM adds its C++ functions to tracebacks
        foreign = compile("raise ValueError", "src/pass.cc", "exec")
        exec(foreign.replace(co_name="ns::Pass::run(int)"))
    if kind == "mumble":
        raise _MumbledError
    if kind == "corrupt":  # as a kernel that writes out of bounds
        _corrupted.append(rest)
    if kind == "segfault" or (kind == "use" and _corrupted):
        ctypes.string_at(0)
    elif kind == "hang":
        print("about to hang", flush=True)
        time.sleep(3600)
    elif kind == "exit":
        os._exit(int(rest))
    elif kind == "leave":
        sys.exit(int(rest))
    elif kind == "abort":
        os.abort()
    elif kind == "wait":
        Path(rest).write_text(str(os.getpid()))
        time.sleep(3600)
    elif kind == "until":
        _until(rest)
    elif kind == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGABRT])
        _until(rest)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGABRT])
        time.sleep(3600)
    elif kind == "linger":
        _close_pipes()
        _until(rest)
        ctypes.string_at(0)
    elif kind == "frame":
        _write_to_pipes(pack(json.loads(rest)))
    elif kind == "forge":
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                if "assay-status" in str(Path(f"/proc/self/fd/{fd}").readlink()):
                    os.pwrite(fd, PAGE.pack(10**6, 0, 0, 0, 10**18, 0), 0)
        time.sleep(3600)
    elif kind == "promise":
        _write_to_pipes(pack({}, bytes(1 << 16))[:100])
    elif kind == "trickle":
        _write_to_pipes(_PREFIX.pack(_MAGIC, 2, MAX_BLOB) + b"{}")
        while True:
            _write_to_pipes(b"x")
            time.sleep(0.01)
    elif kind == "eat":
        hoard = [np.ones(8 << 20, np.uint8) for _ in range(100)]  # no more, whenever somebody looks
        print(len(hoard))
        time.sleep(3600)
    elif kind == "reserve":
        np.ones(1 << 45, np.uint8)
    elif kind == "print":
        print(rest, flush=True)
    elif kind == "write":
        with open("big", "wb") as file:
            for _ in range(1 << 12):
                file.write(bytes(1 << 20))
    elif kind == "scribble":
        _write_to_pipes(b"x" * 64)
    elif kind == "child":
        if (child := os.fork()) == 0:
            time.sleep(3600)
        Path(rest).write_text(str(child))
        time.sleep(3600)
    elif kind == "compiler":  # as a compiler that starts another, which takes memory
        subprocess.run([sys.executable, "-c", rest], check=False)
    elif kind == "python":
        exec(rest, {})
    elif kind == "freed":
        doomed = _CrashesWhenFreed()
        doomed.itself = doomed  # type: ignore[attr-defined]
        del doomed
        import gc

        gc.collect()
