"""What the benchmarks of execution share: their cases, and what they say of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.triage.traits import Traits


def machine() -> str:
    """The machine and how busy it is: figures of a busy one say little."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before the start"


def verdict(kept: bool, bar: str) -> int:
    """Says whether the bar was kept; the exit code."""
    print(f"{'kept' if kept else 'NOT KEPT'}: {bar}")
    return 0 if kept else 1


def traits_to_json(traits: Traits | None) -> Any:
    """What a reduction left says of its bug, to be kept in a file."""
    return None if traits is None else asdict(traits)


def traits_from_json(told: Any) -> Traits | None:
    """The same, read again."""
    if told is None:
        return None
    lists = {name: tuple(told[name]) for name in ("dtypes", "needs", "operators")}
    return Traits(pattern=told["pattern"], root=told["root"], **lists)


_BARE = """
import json, os, sys, time
from fuzzing import backends
from fuzzing.cases import Corpus
corpus, name, ids, times, core = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])
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
sys.stdin.readline()
begin, used = time.perf_counter(), time.process_time()
for _ in range(times):
    for program, inputs in prepared:
        once(program, inputs)
print("took", time.perf_counter() - begin, time.process_time() - used, flush=True)
"""


class Floor(NamedTuple):
    """Seconds that a bare loop took: by the clock, and of processor time."""

    wall: float
    processor: float


def bare(
    corpus: Path, backend: str, ids: list[str], times: int, cores: Sequence[int | None] = (None,)
) -> list[Floor]:
    """What bare loops over the cases take: one for each of `cores`, bound to it, all at once."""
    arguments = [str(corpus), backend, json.dumps(ids), str(times)]
    kept = str(corpus.parent)
    needed = backends.get(backend).environment.items()  # what a worker has, too
    environment = os.environ | {name: value.format(scratch=kept, cache=kept) for name, value in needed}
    loops = [
        subprocess.Popen(
            [sys.executable, "-c", _BARE, *arguments, json.dumps(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )
        for core in cores
    ]
    for loop in loops:
        _said(loop, "ready")
    for loop in loops:
        assert loop.stdin is not None
        loop.stdin.write("\n")
        loop.stdin.flush()
    taken = [Floor(*map(float, _said(loop, "took").split())) for loop in loops]
    for loop in loops:
        loop.communicate()
    return taken


def _said(loop: subprocess.Popen[str], word: str) -> str:
    """What a loop says after `word`; compilers print other lines."""
    assert loop.stdout is not None
    for line in loop.stdout:
        if line.startswith(word):
            return line.removeprefix(word).strip()
    raise SystemExit(f"a bare loop ended without saying {word!r}: run it by hand to see why")


def single_operators(corpus: Path, count: int) -> list[str]:
    """Ids of `count` models of one node, of ONNX's node tests; collected if the corpus holds nothing yet."""
    if next(Corpus(corpus).ids(), None) is None:
        command = [sys.executable, "-m", "fuzzing.migrate", "onnx-node-tests", "--corpus", str(corpus)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return list(islice(_single(Corpus(corpus)), count))


def _single(corpus: Corpus) -> Iterator[str]:
    for case_id in corpus.ids():
        model = onnx.load_from_string(corpus.get(case_id).program.to_bytes())
        if len(model.graph.node) == 1:
            yield case_id
