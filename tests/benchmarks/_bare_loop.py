"""The baseline: a process that compiles and runs cases in a loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from fuzzing import backends

_LOOP = """
import json, os, sys, time
from fuzzing import backends
from fuzzing.cases import Corpus
corpus, name, ids, core = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])
if core is not None:
    os.sched_setaffinity(0, [core])
cases = map(Corpus(corpus).get, ids)
prepared = [(case.program, list(case.values())) for case in cases]
backend = backends.get(name)()
backend.load("CPU", {})

def once(program, inputs):
    try:
        backend.run(backend.compile(backend.convert(program, inputs)), inputs)
    except Exception:
        pass

once(*prepared[0])
print("ready", flush=True)
for line in sys.stdin:
    first, last, times = json.loads(line)
    begin, used = time.perf_counter(), time.process_time()
    for _ in range(times):
        for program, inputs in prepared[first:last]:
            once(program, inputs)
    print("took", time.perf_counter() - begin, time.process_time() - used, flush=True)
"""


class Floor(NamedTuple):
    """Seconds: wall clock and CPU time."""

    wall: float
    processor: float


class BareLoop:
    """Such a process, with all its cases in memory.

    core  the processor it is bound to, if any
    """

    def __init__(self, corpus: Path, backend: str, ids: Sequence[str], core: int | None = None) -> None:
        kept = str(corpus.parent)
        needed = backends.get(backend).environment.items()  # what a worker has, too
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(corpus), backend, json.dumps(list(ids)), json.dumps(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {name: value.format(scratch=kept, cache=kept) for name, value in needed},
            text=True,
        )

    def wait(self) -> None:
        """Waits until the compiler is imported."""
        self._said("ready")

    def begin(self, first: int, last: int, times: int) -> None:
        """Starts running the cases from `first` to before `last`, repeatedly."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps([first, last, times])}\n")
        self._process.stdin.flush()

    def took(self) -> Floor:
        """Waits for the end and returns the time."""
        return Floor(*map(float, self._said("took").split()))

    def end(self) -> None:
        """Stops the process."""
        self._process.communicate()

    def _said(self, word: str) -> str:
        """The rest of the line that begins with `word`; compilers print other lines."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise SystemExit(f"a bare loop ended without saying {word!r}: run it by hand to see why")


@contextmanager
def bare_loops(
    corpus: Path, backend: str, ids: Sequence[str], cores: Sequence[int | None]
) -> Iterator[list[BareLoop]]:
    """One loop for each of `cores`, all started."""
    with ExitStack() as held:
        loops = [BareLoop(corpus, backend, ids, core) for core in cores]
        for loop in loops:
            held.callback(loop.end)
        for loop in loops:
            loop.wait()
        yield loops


def bare(
    corpus: Path, backend: str, ids: Sequence[str], times: int, cores: Sequence[int | None]
) -> list[Floor]:
    """Times of simultaneous bare loops over the cases, one bound to each of `cores`."""
    with bare_loops(corpus, backend, ids, cores) as loops:
        for loop in loops:
            loop.begin(0, len(ids), times)
        return [loop.took() for loop in loops]
