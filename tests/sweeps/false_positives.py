"""False positives: cases on which library and compiler clearly agree must not fail.

`python -m tests.sweeps.false_positives --backend tvm --cases 2000 [--corpus DIR ...]`
`                               [--option NAME=VALUE ...] [--seed N] [--log FILE]`

A case is known to be good if the compiler's outputs have the library's types and shapes and differ by at most
a thousandth, by the numpy code below and not by Assay's oracles. The oracles, references and rechecks
included, must not report it. Takes minutes to hours, so it is run by hand; exit code 1 if a good case was
reported. Without --corpus the cases are ONNX's node tests and, for backends that take torch programs, torch's
operator samples.

--log stores a line for each batch with all failures, and the same command resumes after an interruption, also
with another batch size. A batch starts the compiler once and its library up to six times: about half a
minute.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import backends
from fuzzing.cases import Corpus, Tensor, TestCase, Value
from fuzzing.cases.values import RAW_DTYPES, STRING
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun
from fuzzing.execution import Execution
from fuzzing.outcomes import Outcome

#: Relative to the element or the largest element: far above the default profile, but below the error of a
#: wrong formula (cubic interpolation with the wrong border is off by a hundredth).
NEAR = 1e-3
NEAR_HALF = 1e-2  # float16 has 11 bits
_SOURCES = {"OnnxModel": "onnx-node-tests", "TorchCall": "torch-opinfo"}

Outputs = Sequence[tuple[str, Value]]


def near(got: Value, want: Value) -> bool:
    """Whether two tensors have one type and shape and close values; other values must be equal."""
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
    """Whether there are as many outputs, each close to its counterpart."""
    return len(got) == len(want) and all(near(a, b) for (_, a), (_, b) in zip(got, want, strict=True))


class _Held(ShardRun):
    """A run that also compares the compiler's outputs with the library's.

    good  ids of the cases on which they clearly agree
    """

    def __init__(self, shard: Shard) -> None:
        super().__init__(shard)
        self.good: set[str] = set()

    def _decide(self, case_id: str, case: TestCase, execution: Execution) -> Outcome:
        if execution.ending == "returned" and agree(execution.outputs, case.expected or ()):
            self.good.add(case_id)
        return super()._decide(case_id, case, execution)


@dataclass(frozen=True)
class Sweep:
    """The cases to check, `step` at a time; an interruption loses one batch."""

    backend: str
    corpora: tuple[Path, ...]
    options: dict[str, str]
    seed: int
    step: int

    def drawn(self) -> list[tuple[Path, str]]:
        """All cases, shuffled."""
        drawn = [(corpus, case_id) for corpus in self.corpora for case_id in sorted(Corpus(corpus).ids())]
        random.Random(self.seed).shuffle(drawn)
        return drawn

    def piece(self, drawn: Sequence[tuple[Path, str]]) -> dict[str, Any]:
        """The result of a batch: number of cases, verdicts of the good ones, failures."""
        verdicts: Counter[str] = Counter()
        accused = []
        for corpus in self.corpora:
            for outcome, good in self._judged(
                corpus, [case_id for where, case_id in drawn if where == corpus]
            ):
                if good:
                    verdicts[outcome.verdict.value] += 1
                if outcome.verdict.is_failure:
                    accused.append([good, outcome.case, outcome.verdict.value, outcome.summary])
        return {"seen": len(drawn), "good": dict(verdicts), "accused": accused}

    def _judged(self, corpus: Path, ids: Sequence[str]) -> Iterator[tuple[Outcome, bool]]:
        """The campaign's verdict of each case, and whether library and compiler clearly agree.

        Cases whose process died are repeated in a fresh process, as in a campaign: an earlier case may have
        corrupted its memory.
        """
        kinds, options = backends.get(self.backend).kinds, dict(self.options)
        taken = tuple(case_id for case_id in ids if Corpus(corpus).get(case_id).program.kind in kinds)
        shard = Shard(str(corpus), taken, self.backend, "sweep", sys.executable, options=options)
        died = []
        if taken:
            run = _Held(shard)
            for _, outcome in run.outcomes():
                if outcome.evidence.signal:
                    died.append(outcome.case)
                else:
                    yield outcome, outcome.case in run.good
        if died:
            run = _Held(replace(shard, cases=tuple(died), fresh=True))
            for _, outcome in run.outcomes():
                yield outcome, outcome.case in run.good


def collect(backend: str, folder: Path) -> list[Path]:
    """A corpus of every source whose programs the backend takes."""
    found = []
    for kind, source in _SOURCES.items():
        if kind in backends.get(backend).kinds:
            found.append(folder / source)
            command = [sys.executable, "-m", "fuzzing.migrate", source, "--corpus", str(found[-1])]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return found


def pieces(sweep: Sweep, log: Path | None) -> Iterator[dict[str, Any]]:
    """The result of each batch in order; logged batches are not repeated."""
    lines = log.read_text(encoding="utf-8").splitlines() if log and log.exists() else []
    known = [json.loads(line) for line in lines]
    yield from known
    for drawn in _cut(sweep.drawn()[sum(found["seen"] for found in known) :], sweep.step):
        found = sweep.piece(drawn)
        if log is not None:
            with open(log, "a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
        yield found


def _cut(drawn: Sequence[tuple[Path, str]], step: int) -> Iterator[list[tuple[Path, str]]]:
    source = iter(drawn)
    while piece := list(islice(source, step)):
        yield piece


def swept(sweep: Sweep, count: int, log: Path | None) -> int:
    """Checks cases until `count` are good; returns how many of those were reported."""
    verdicts: Counter[str] = Counter()
    seen, accused, begin = 0, 0, time.monotonic()
    for found in pieces(sweep, log):
        seen += found["seen"]
        verdicts.update(found["good"])
        for good, case_id, verdict, summary in found["accused"]:
            if good:
                accused += 1
                print(f"ACCUSED {case_id} {verdict}: {summary}", flush=True)
        line = f"{verdicts.total()} known-good cases of {seen}, {accused} accused: {dict(verdicts)}"
        print(f"{sweep.backend} {sweep.options or ''}: {line}, {time.monotonic() - begin:.0f} s", flush=True)
        if verdicts.total() >= count:
            break
    return accused


def main(argv: Sequence[str]) -> int:
    """Runs the sweep."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.false_positives")
    parser.add_argument("--backend", required=True)
    parser.add_argument("--cases", type=int, default=2000, help="known-good cases wanted")
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which cases are looked at")
    parser.add_argument("--step", type=int, default=500, help="cases looked at before a line is written")
    parser.add_argument("--log", type=Path, help="of this sweep alone")
    args = parser.parse_args(argv)
    options = dict(item.split("=", 1) for item in args.option)
    with tempfile.TemporaryDirectory() as folder:
        corpora = args.corpus or collect(args.backend, Path(folder))
        sweep = Sweep(args.backend, tuple(corpora), options, args.seed, args.step)
        return 1 if swept(sweep, args.cases, args.log) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
