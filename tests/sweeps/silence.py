"""Silence: cases on which library and compiler plainly agree must bring no accusation.

`python -m tests.sweeps.silence --backend tvm --cases 2000 [--corpus DIR ...] [--option NAME=VALUE ...]`

A case is known to be good if the compiler's outputs have the types and shapes of the library's and lie
within a thousandth of them, by the few lines of numpy below: none of our oracles is asked. Those cases then
go through a shard, with references, judges and appeals. Takes minutes to an hour, so it is run by hand; the
exit code is 1 if anything was accused. Without --corpus the cases are ONNX's node tests and, for a backend
that takes torch programs, torch's operator samples.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from fuzzing import backends
from fuzzing.cases import Corpus, Tensor, TestCase, Value
from fuzzing.cases.values import RAW_DTYPES, STRING
from fuzzing.execute.process import Command
from fuzzing.execute.run import Run
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from fuzzing.outcomes import Outcome

#: Of the element, or of the largest element: far beyond what the default profile allows, and not yet so far
#: that a wrong formula passes (cubic interpolation with the wrong border is off by a hundredth).
NEAR = 1e-3
NEAR_HALF = 1e-2  # float16 has 11 bits
_CHUNK = 200  # cases looked at before we count again
_SOURCES = {"OnnxModel": "onnx-node-tests", "TorchCall": "torch-opinfo"}

Outputs = Sequence[tuple[str, Value]]


def near(got: Value, want: Value) -> bool:
    """Whether two tensors are of one type and shape, and numerically near; anything else must be equal."""
    if not isinstance(got, Tensor) or not isinstance(want, Tensor):
        return got == want
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    if want.dtype in RAW_DTYPES or want.dtype == STRING:
        return got.data == want.data
    mine, theirs = got.array(), want.array()
    if theirs.dtype.kind in "biu":
        return bool((mine == theirs).all())
    finite = np.abs(theirs[np.isfinite(theirs)])
    largest = float(finite.max()) if finite.size else 0.0
    bound = NEAR_HALF if want.dtype == "float16" else NEAR
    with np.errstate(all="ignore"):
        return bool(np.allclose(mine, theirs, rtol=bound, atol=bound * largest, equal_nan=True))


def agree(got: Outputs, want: Outputs) -> bool:
    """Whether there are as many outputs, each near its counterpart by place."""
    return len(got) == len(want) and all(near(a, b) for (_, a), (_, b) in zip(got, want, strict=True))


def outputs(backend: str, cases: Sequence[TestCase], options: dict[str, str]) -> dict[str, Outputs]:
    """What a backend gives for those cases that it can run, by id."""
    supervisor: Supervisor[str] = Supervisor(Command(sys.executable, backend, options=dict(options)))
    runs = supervisor.run((case.id, case) for case in cases)
    return {case_id: execution.outputs for case_id, execution in runs if execution.ending == "returned"}


def library(cases: Sequence[TestCase]) -> dict[str, Outputs]:
    """What the cases must give: what they came with, or what their library gives."""
    found: dict[str, Outputs] = {case.id: case.expected for case in cases if case.expected is not None}
    for kind in {case.program.kind for case in cases}:
        bare = [case for case in cases if case.expected is None and case.program.kind == kind]
        if bare:
            found |= outputs(backends.reference_of(kind).name, bare, {})
    return found


def known_good(backend: str, cases: Sequence[TestCase], options: dict[str, str]) -> list[str]:
    """The ids of the cases on which backend and library plainly agree."""
    want = library(cases)
    got = outputs(backend, [case for case in cases if case.id in want], options)
    return [case_id for case_id, given in got.items() if agree(given, want[case_id])]


def judged(backend: str, corpus: Path, ids: Sequence[str], options: dict[str, str]) -> Iterator[Outcome]:
    """What a campaign makes of the cases."""
    shard = Shard(str(corpus), tuple(ids), backend, "sweep", sys.executable, options=dict(options))
    return (outcome for _, outcome in Run(shard).outcomes())


def collect(backend: str, folder: Path) -> list[Path]:
    """A corpus of every source whose programs the backend takes."""
    found = []
    for kind, source in _SOURCES.items():
        if kind in backends.get(backend).kinds:
            found.append(folder / source)
            command = [sys.executable, "-m", "fuzzing.migrate", source, "--corpus", str(found[-1])]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return found


def sweep(backend: str, corpora: Sequence[Path], count: int, options: dict[str, str]) -> list[Outcome]:
    """Looks at shuffled cases until `count` are known to be good; prints, and returns the accusations."""
    drawn = [(corpus, case_id) for corpus in corpora for case_id in Corpus(corpus).ids()]
    random.Random(0).shuffle(drawn)
    verdicts: Counter[str] = Counter()
    accusations: list[Outcome] = []
    seen, begin, source = 0, time.monotonic(), iter(drawn)
    while verdicts.total() < count and (chunk := list(islice(source, _CHUNK))):
        seen += len(chunk)
        for corpus in corpora:
            cases = [Corpus(corpus).get(case_id) for where, case_id in chunk if where == corpus]
            taken = [case for case in cases if case.program.kind in backends.get(backend).kinds]
            good = known_good(backend, taken, options)[: count - verdicts.total()]
            for outcome in judged(backend, corpus, good, options) if good else ():
                verdicts[outcome.verdict.value] += 1
                if outcome.verdict.accuses:
                    accusations.append(outcome)
                    print(f"ACCUSED {outcome.case} {outcome.verdict.value}: {outcome.summary}", flush=True)
        line = f"{verdicts.total()} known-good cases of {seen}, {len(accusations)} accused: {dict(verdicts)}"
        print(f"{backend} {options or ''}: {line}, {time.monotonic() - begin:.0f} s", flush=True)
    return accusations


def main(argv: Sequence[str]) -> int:
    """The command; see above."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.silence")
    parser.add_argument("--backend", required=True)
    parser.add_argument("--cases", type=int, default=2000, help="known-good cases wanted")
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    args = parser.parse_args(argv)
    options = dict(item.split("=", 1) for item in args.option)
    with tempfile.TemporaryDirectory() as folder:
        corpora = args.corpus or collect(args.backend, Path(folder))
        return 1 if sweep(args.backend, corpora, args.cases, options) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
