"""Cost of a crashing case, relative to importing the compiler; the bar is 1.5.

Runs the same cases with and without some that die of SIGSEGV in the compile phase, and compares the
difference for each with a bare process that imports and prepares the compiler.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzzing import backends
from fuzzing.cases import Corpus, OnnxModel, Provenance, TestCase
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from tests.benchmarks._common import machine, single_operators, verdict

_CRASH = b"crash"
#: The backend itself, but one program crashes.
_CRASHING = """
import ctypes
from fuzzing.backends import base

@base.register
class Crashing(base.Backend):
    name = "crashing"
    package = {package!r}
    import_name = {import_name!r}
    environment = {environment!r}

    def load(self, device, options):
        self._inner = base.get({name!r})()
        self._inner.load(device, options)

    def convert(self, program, inputs):
        data = program.to_bytes()
        return data if data == {crash!r} else self._inner.convert(program, inputs)

    def compile(self, model):
        return ctypes.string_at(0) if model == {crash!r} else self._inner.compile(model)

    def run(self, executable, inputs):
        return self._inner.run(executable, inputs)
"""
_IMPORT = """
import sys
from fuzzing import backends
backends.get(sys.argv[1])().load("CPU", {})
"""


def import_seconds(backend: str) -> float:
    """Seconds of a process that only imports and prepares the compiler."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", _IMPORT, backend], check=True)
    return time.perf_counter() - begin


def seconds(file: Path, cases: list[TestCase]) -> float:
    """From the first answer to the last."""
    supervisor: Supervisor[None] = Supervisor(WorkerCommand(sys.executable, str(file)))
    answers: Iterator[object] = supervisor.run((None, case) for case in cases)
    next(answers)
    begin = end = time.perf_counter()
    for _ in answers:
        end = time.perf_counter()
    return end - begin


def main(argv: Sequence[str]) -> int:
    """Prints the ratio, round by round and in the median."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks crash-cost")
    parser.add_argument("--backend", default="onnxruntime", choices=backends.compilers())
    parser.add_argument("--crashes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--corpus", type=Path)
    args = parser.parse_args(argv)
    print(machine())
    kind = backends.get(args.backend)
    fatal = TestCase(OnnxModel(_CRASH), (), Provenance("benchmark", "crash", "", "", ""))
    ratios = []
    with tempfile.TemporaryDirectory() as temporary:
        corpus = args.corpus or Path(temporary) / "corpus"
        fine = [Corpus(corpus).get(one) for one in single_operators(corpus, 10 * (args.crashes + 1))]
        mixed = list(fine)
        for place in range(args.crashes, 0, -1):
            mixed.insert(10 * place, fatal)
        file = Path(temporary) / "crashing.py"
        file.write_text(
            _CRASHING.format(
                crash=_CRASH,
                name=kind.name,
                package=kind.package,
                import_name=kind.import_name,
                environment=kind.environment,
            )
        )
        for _ in range(args.rounds):
            bare = statistics.median(import_seconds(args.backend) for _ in range(5))
            cost = (seconds(file, mixed) - seconds(file, fine)) / args.crashes
            ratios.append(cost / bare)
            print(f"import {bare:.3f} s  a crash {cost:.3f} s  ratio {ratios[-1]:.2f}")
    ratio = statistics.median(ratios)
    print(f"{args.backend}, {args.crashes} crashes, median of {args.rounds} rounds: {ratio:.2f}")
    return verdict(ratio <= 1.5, "a crash costs <= 1.5 times the import of its compiler")
