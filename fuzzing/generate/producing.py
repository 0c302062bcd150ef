"""Many models of one run: made in batches, by one process or several, each written before the next is made.

Model `i` depends on the run's seed and on `i` alone, so a run is the same however many processes share it;
and as cases are named by content, a run that was killed is completed by running it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path

from fuzzing.cases import Corpus, TestCase
from fuzzing.coverage import OperatorSet, Tally
from fuzzing.draws import derive
from fuzzing.errors import InfrastructureError
from fuzzing.generate import casing, generators, measuring
from fuzzing.generate.closing import closers
from fuzzing.generate.generators import Generator
from fuzzing.generate.isra.settings import Settings
from fuzzing.generate.isra.solver import Generated
from fuzzing.processes import shared

_BATCH = 64  # models; a second of work at most, and its results are some kilobytes


@dataclass(frozen=True)
class Plan:
    """What a run makes.

    seed    of the run; model i has the seed `derive(seed, i)`
    corpus  the folder of the cases
    measured  the operators that coverage is measured of; None to measure nothing
    """

    generator: str
    settings: Settings
    seed: int
    corpus: Path
    measured: OperatorSet | None = None


@dataclass(frozen=True)
class Made:
    """One model that was made. `new` is False if the corpus held it already."""

    index: int
    case: str
    seed: int
    nodes: int
    new: bool


@dataclass
class Batch:
    """Models that one process made.

    making_s, measuring_s   seconds that it took, apart
    making_cpu_s            of the first, those that the process ran: without waiting for others and for disks
    tally                   what the models cover, if that is measured
    """

    models: list[Made] = field(default_factory=list)
    making_s: float = 0.0
    making_cpu_s: float = 0.0
    measuring_s: float = 0.0
    tally: Tally | None = None


def batches(plan: Plan, count: int, jobs: int) -> Iterator[Batch]:
    """Models 0 … count-1 in this order, by `jobs` processes; few batches are held at a time.

    Raises UsageError for settings under which nothing can be made, InfrastructureError where the corpus
    cannot be written, or a process dies.
    """
    work = (range(first, min(first + _BATCH, count)) for first in range(0, count, _BATCH))
    _generator(plan.generator, plan.settings)  # what cannot be made is told here, once
    return shared(
        partial(batch, plan),
        work,
        jobs,
        "a process that made models died, perhaps for want of memory; what it had written is kept: "
        "run again with fewer --jobs",
    )


def batch(plan: Plan, indices: Iterable[int]) -> Batch:
    """Makes and writes the models of these indices."""
    made = Batch(tally=None if plan.measured is None else Tally(plan.measured))
    corpus = Corpus(plan.corpus)
    for index in indices:
        begin, ran = time.perf_counter(), time.process_time()
        seed = derive(plan.seed, index)
        generated = _generator(plan.generator, plan.settings).generate(seed)
        case = _case(plan, index, seed, generated)
        new = _store(case, corpus)
        written = time.perf_counter()
        made.making_s += written - begin
        made.making_cpu_s += time.process_time() - ran
        made.models.append(
            Made(index, case.id, seed, len(generated.graph.nodes) - closers(generated.graph), new)
        )
        if made.tally is not None:
            measuring.measure(generated, made.tally)
            made.measuring_s += time.perf_counter() - written
    return made


def _case(plan: Plan, index: int, seed: int, generated: Generated) -> TestCase:
    test = f"{plan.generator}/{plan.seed}/{index}"
    origin = casing.Origin(plan.generator, _onnx())
    return casing.case(generated, seed, origin, test, initialisers=plan.settings.initialisers)


@lru_cache(maxsize=4)
def _generator(name: str, settings: Settings) -> Generator:
    return generators.get(name)(settings)


@lru_cache(maxsize=1)
def _onnx() -> str:
    return version("onnx")


def _store(case: TestCase, corpus: Corpus) -> bool:
    try:
        return corpus.add(case)
    except OSError as error:
        raise InfrastructureError(
            f"cannot write to {corpus.root}: {error.strerror}; choose another folder with --out, or free "
            "what it needs, and run again: what is there is not made twice"
        ) from error
