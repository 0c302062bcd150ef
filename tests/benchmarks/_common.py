"""Helpers of the execution benchmarks: cases, and a description of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import onnx

from fuzzing.cases import Corpus
from fuzzing.triage.traits import Traits


def machine() -> str:
    """The machine and its load; figures from a busy machine are unreliable."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before the start"


def verdict(kept: bool, bar: str) -> int:
    """Prints whether the bar was met; returns the exit code."""
    print(f"{'kept' if kept else 'NOT KEPT'}: {bar}")
    return 0 if kept else 1


def traits_to_json(traits: Traits | None) -> Any:
    """The traits of a reduced case as JSON."""
    return None if traits is None else asdict(traits)


def traits_from_json(reported: Any) -> Traits | None:
    """The traits read from JSON."""
    if reported is None:
        return None
    names = ("dtypes", "needs", "operators", "proven", "proven_inputs")
    lists = {name: tuple(reported.get(name, ())) for name in names}
    return Traits(pattern=reported["pattern"], root=reported["root"], **lists)


def single_operators(corpus: Path, count: int) -> list[str]:
    """Ids of `count` single-node models from ONNX's node tests; collects them into an empty corpus."""
    if next(Corpus(corpus).ids(), None) is None:
        command = [sys.executable, "-m", "fuzzing.migrate", "onnx-node-tests", "--corpus", str(corpus)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return list(islice(_single(Corpus(corpus)), count))


def _single(corpus: Corpus) -> Iterator[str]:
    for case_id in corpus.ids():
        model = onnx.load_from_string(corpus.get(case_id).program.to_bytes())
        if len(model.graph.node) == 1:
            yield case_id
