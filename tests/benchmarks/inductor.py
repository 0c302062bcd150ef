"""Overhead of Assay over torch.compile on the CPU, and the start-up cost of a worker.

Compiles and runs the same operators of torch's database in two ways, each in one process:

    bare    as a script: make the module, `torch._dynamo.reset()`, `torch.compile`, two calls. The baseline;
            its share of g++ is shown
    assay   the same cases through supervisor, worker and oracle

Importing torch and the first kernel are not counted. Both keep inductor's precompiled header between rounds,
but no compiled kernels. Prints assay/bare by wall clock and CPU time in alternating rounds (bar 1.15), then a
worker's cold and warm start, and the cost of a crashing case relative to importing the compiler (bar 1.5).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fuzzing import backends
from fuzzing.backends.shared.torch_programs import to_torch
from fuzzing.cases import Provenance, Tensor, TestCase, TorchCall, TorchProgram
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.migrate.torch_opinfo import load_database, operator_cases
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Verdict

_BARE = """
import json, subprocess, sys, time
import torch, torch._dynamo, torch._inductor.compile_fx
import torch._functorch.config, torch._inductor.config
torch.set_num_threads(1)
torch._inductor.config.fx_graph_cache = False
torch._functorch.config.enable_autograd_cache = False

cpp = 0.0
run = subprocess.run
def timed(*args, **kwargs):
    global cpp
    begin = time.perf_counter()
    try:
        return run(*args, **kwargs)
    finally:
        cpp += time.perf_counter() - begin
subprocess.run = timed

def once(source, inputs):
    torch._dynamo.reset()
    space = {"__name__": "program"}
    exec(source, space)
    module = space["make"]().requires_grad_(False)
    compiled = torch.compile(module, fullgraph=False, dynamic=False)
    with torch.no_grad():
        for _ in range(2):
            compiled(*space["arrange"]({name: tensor.clone() for name, tensor in inputs.items()}))

def attempt(case):
    try:
        once(*case)
    except Exception:
        pass

cases = torch.load(sys.argv[1])
attempt(cases[0])
cpp = 0.0
begin = time.perf_counter()
for case in cases[1:]:
    attempt(case)
print(json.dumps([time.perf_counter() - begin, cpp]))
"""
_IMPORTS = "import torch, torch._dynamo, torch._inductor.compile_fx"
_KILLER = "import os, signal\n\n\ndef forward(x):\n    os.kill(os.getpid(), signal.SIGSEGV)\n    return x\n"


class Cost(NamedTuple):
    """Wall and CPU seconds with children, and a note."""

    wall: float
    processor: float
    note: float = 0.0


def operators(count: int) -> list[TestCase]:
    """`count` cases, the first of each operator, spread over torch's database, with expected outputs."""
    entries = load_database()
    chosen: list[TestCase] = []
    for entry in entries[:: max(1, len(entries) // (count * 5 // 4))]:
        found = (case for case in operator_cases(entry, entry.name) if isinstance(case, TestCase))
        chosen += islice((case for case in found if case.comparison == "values"), 1)
    return _with_results(chosen[:count])


def _with_results(cases: list[TestCase]) -> list[TestCase]:
    eager: Supervisor[TestCase] = Supervisor(WorkerCommand(sys.executable, "torch_eager"))
    ended = eager.run((case, case) for case in cases)
    return [replace(case, expected=found.outputs) for case, found in ended if found.ending == "returned"]


def bare(cases: list[TestCase], folder: Path) -> Cost:
    """The baseline; `note` is the time in the C++ compiler."""
    import torch

    reported = []
    for case in cases:
        assert isinstance(case.program, TorchCall)
        reported.append((case.program.source(), {name: to_torch(value) for name, value in case.values()}))
    torch.save([reported[0], *reported], folder / "cases.pt")
    with tempfile.TemporaryDirectory() as kernels:
        environment = os.environ | {"TMPDIR": str(folder), "TORCHINDUCTOR_CACHE_DIR": kernels}
        environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        before = _processor()
        command = [sys.executable, "-c", _BARE, str(folder / "cases.pt")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    wall, cpp = json.loads(done.stdout)
    return Cost(wall, _processor() - before, cpp)


def assay(cases: list[TestCase], cache: Path) -> Cost:
    """The same through Assay; `note` is how many cases passed."""
    kind = backends.get("inductor")
    before, passed = _processor(), 0
    supervisor: Supervisor[TestCase] = Supervisor(WorkerCommand(sys.executable, kind.name, cache=str(cache)))
    answers = supervisor.run((case, case) for case in [cases[0], *cases])
    next(answers)
    begin = end = time.perf_counter()
    for case, execution in answers:
        passed += decide_outcome(case, execution, kind, "bench", "CPU").verdict is Verdict.PASS
        end = time.perf_counter()
    return Cost(end - begin, _processor() - before, passed)


def _processor() -> float:
    """CPU seconds of this process and its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def starts(cache: Path) -> Iterator[tuple[str, float]]:
    """Start-up seconds of a worker with an empty and with a full cache folder."""
    x = Tensor.of(np.ones(8, np.float32))
    fine, killer = (_program(text, x) for text in ("def forward(x):\n    return x\n", _KILLER))
    with tempfile.TemporaryDirectory() as empty:
        yield "first start of a toolchain", _seconds([fine], Path(empty))
    start = _seconds([fine], cache)
    yield "usual start", start
    yield "a crash", (_seconds([killer] * 3 + [fine], cache) - start) / 3
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", _IMPORTS], check=True)
    yield "importing the compiler alone", time.perf_counter() - begin


def _program(text: str, x: Tensor) -> TestCase:
    return TestCase(TorchProgram(text), (("x", x),), Provenance("benchmark", "", "", "", ""))


def _seconds(cases: list[TestCase], cache: Path) -> float:
    """Until the last answer."""
    begin = end = time.perf_counter()
    supervisor: Supervisor[None] = Supervisor(WorkerCommand(sys.executable, "inductor", cache=str(cache)))
    for _ in supervisor.run((None, case) for case in cases):
        end = time.perf_counter()
    return end - begin


def main(argv: Sequence[str]) -> int:
    """Prints the ratios of each round, their median, and start-up costs."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks inductor")
    parser.add_argument("--cases", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder, cache = Path(temporary), Path(temporary) / "cache"
        cases = operators(args.cases)
        idle = bare(cases[:1], folder).processor, assay(cases[:1], cache).processor  # and makes the headers
        idle = bare(cases[:1], folder).processor, assay(cases[:1], cache).processor
        walls, processors = [], []
        for _ in range(args.rounds):
            floor, ours = bare(cases, folder), assay(cases, cache)
            walls.append(ours.wall / floor.wall)
            processors.append((ours.processor - idle[1]) / (floor.processor - idle[0]))
            print(
                f"bare {floor.wall:.1f} s ({floor.note / floor.wall:.0%} in g++)  assay {ours.wall:.1f} s "
                f"({ours.note:.0f} of {len(cases)} pass)  assay/bare {walls[-1]:.3f}  "
                f"processor {processors[-1]:.3f}",
                flush=True,
            )
        print(f"inductor, {len(cases)} cases, median of {args.rounds} rounds:")
        print(f"  assay/bare            {statistics.median(walls):.3f}")
        print(f"  in processor time     {statistics.median(processors):.3f}")
        for what, seconds in starts(cache):
            print(f"  {what:28} {seconds:.1f} s", flush=True)
    return 0
