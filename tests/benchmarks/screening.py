"""Speed of a rung that screens mutated programs, by default Dynamo with the eager backend, on one core.

Both run the same mutants, each in processes of its own, in alternating rounds:

    floor   as a script, with torch's defaults: `_dynamo.reset()`, `torch.compile(backend=…)`, two calls
    assay   makes and checks the mutants, computes references, runs worker and oracle

The first mutants are not counted: they import modules of torch and load its samples, once in a process.
Prints programs per second of CPU time (bar: 10), per minute, and assay/floor.
"""

from __future__ import annotations

import argparse
import collections
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from fuzzing import backends
from fuzzing.backends.shared.torch_programs import to_torch
from fuzzing.cases import TestCase, TorchProgram
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.migrate import torchprobe
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Verdict
from tests.benchmarks._common import machine

_FLOOR = """
import json, logging, sys, time, types, warnings
import torch, torch._dynamo
torch.set_num_threads(1)
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

def once(source, inputs):
    torch._dynamo.reset()
    module = sys.modules["program"] = types.ModuleType("program")
    exec(source, module.__dict__)
    compiled = torch.compile(module.make().requires_grad_(False), backend=sys.argv[3], dynamic=False)
    with torch.no_grad():
        for _ in range(2):
            compiled(*module.arrange({name: tensor.clone() for name, tensor in inputs.items()}))

def attempt(case):
    try:
        once(*case)
    except Exception:
        pass

cases, first = torch.load(sys.argv[1]), int(sys.argv[2])
for case in cases[:first]:
    attempt(case)
begin = time.process_time()
for case in cases[first:]:
    attempt(case)
print(json.dumps(time.process_time() - begin))
"""

#: Mutants that are not counted.
_FIRST = 25


def floor(cases: Sequence[TestCase], rung: str, folder: Path) -> float:
    """CPU seconds of the script for the cases that count."""
    torch.save(
        [
            (case.program.source(), {name: to_torch(value) for name, value in case.values()})
            for case in cases
            if isinstance(case.program, TorchProgram)
        ],
        folder / "cases.pt",
    )
    backend = backends.get("inductor").rungs[rung]["torch_backend"]
    command = [sys.executable, "-c", _FLOOR, str(folder / "cases.pt"), str(_FIRST), backend]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def assay(cases: Sequence[TestCase], rung: str) -> tuple[float, int]:
    """CPU seconds of references, worker and oracle, start-up included, and how many cases pass."""
    before, passed = _processor(), 0
    eager: Supervisor[TestCase] = Supervisor(WorkerCommand(sys.executable, "torch_eager"))
    answered = eager.run((case, case) for case in cases)
    known = [replace(case, expected=found.outputs) for case, found in answered if found.ending == "returned"]
    kind = backends.get("inductor")
    options = kind.rungs[rung]
    compiled: Supervisor[TestCase] = Supervisor(WorkerCommand(sys.executable, kind.name, options=options))
    for case, execution in compiled.run((case, case) for case in known):
        passed += decide_outcome(case, execution, kind, "benchmark", "CPU").verdict is Verdict.PASS
    return _processor() - before, passed


def _processor() -> float:
    """CPU seconds of this process and its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main(argv: Sequence[str]) -> int:
    """Prints the figures of each round and the median ratio."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks screening")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rung", default="dynamo", choices=["dynamo", "aot", "inductor"])
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    collections.deque(torchprobe.migrate(seed=given.seed + 1, count=_FIRST), maxlen=0)
    begin = _processor()
    made = list(torchprobe.migrate(seed=given.seed, count=given.cases))
    making = (_processor() - begin) / given.cases
    cases = [case for case in made if isinstance(case, TestCase)]
    ratios, speeds = [], []
    with tempfile.TemporaryDirectory() as temporary:
        counted = len(cases) - _FIRST
        for _ in range(given.rounds):
            least = floor(cases, given.rung, Path(temporary)) / counted
            start, _ = assay(cases[:_FIRST], given.rung)
            spent, passed = assay(cases, given.rung)
            whole = making + (spent - start) / counted
            ratios.append(whole / least)
            speeds.append(1 / whole)
            print(
                f"floor {1 / least:.1f}/s  assay {1 / whole:.1f}/s ({passed} of {len(cases)} pass; making a "
                f"mutant takes {making * 1000:.0f} of {whole * 1000:.0f} ms)  assay/floor {ratios[-1]:.2f}",
                flush=True,
            )
    speed = statistics.median(speeds)
    print(
        f"median: assay {speed:.1f}/s, {60 * speed:.0f} a minute, assay/floor {statistics.median(ratios):.2f}"
    )
    print(machine())
    return 0
