"""Processor time of reducing torch calls in one process, against one process for each."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fuzzing.cases import Corpus, Provenance, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.execute.shard import Shard
from fuzzing.rng import derive_seed

#: The faults planted in tests/fuzzing/backends/planted_inductor.py before any lowering.
_CALLS = ("torch.sin", "torch.trunc")


def calls(count: int, seed: int) -> list[TestCase]:
    """Failing calls of different shapes."""
    made = []
    for number in range(count):
        random = np.random.Generator(np.random.PCG64(derive_seed(seed, "calls", number)))
        shape = tuple(int(length) for length in random.integers(1, 5, 1 + number % 4))
        given = Tensor.of(random.uniform(1, 2, shape).astype(np.float32))
        name = _CALLS[number % len(_CALLS)]
        origin = Provenance("benchmark", str(number), name, "torch", "")
        made.append(TestCase(TorchCall(name, (TensorArg("x"),)), (("x", given),), origin))
    return made


def compare(shard: Shard, cases: Sequence[TestCase]) -> tuple[float, float, bool]:
    """Seconds of processor of a process for each case and of one for all; whether the results are equal."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(Path(folder) / "corpus")
        for case in cases:
            corpus.add(case)
        ids = tuple(case.id for case in cases)
        shard = replace(shard, corpus=str(corpus.root))
        results: dict[str, str] = {}
        alone = 0.0
        for case_id in ids:
            seconds, found = _reduce(replace(shard, cases=(case_id,)), Path(folder))
            alone, results = alone + seconds, results | found
        together, found = _reduce(replace(shard, cases=ids), Path(folder))
    return alone, together, found == results and results.keys() == set(ids)


def _reduce(shard: Shard, folder: Path) -> tuple[float, dict[str, str]]:
    """Seconds of processor of one process, and case → the confirmed reduced one."""
    file = folder / "shard.json"
    file.write_text(json.dumps(shard.to_json()))
    before = _processor_s()
    command = [sys.executable, "-m", "fuzzing.reduce", str(file)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    found = {event["from"]: event["id"] for event in events if event.get("confirmed")}
    return _processor_s() - before, found


def _processor_s() -> float:
    """Of all ended processes that this one started, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
