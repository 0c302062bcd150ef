"""Models of one run, made in batches by one or several processes, each written before the next is made.

Model `i` depends only on the run's seed and `i`, so a run does not depend on the number of processes; and as
cases are named by content, rerunning a killed run completes it. A sequential generator, whose models depend
on those before them, makes all of them in this process.
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
from fuzzing.errors import InfrastructureError
from fuzzing.generate import case_builder, generators, graph_coverage
from fuzzing.generate.generators import GeneratedGraph, Generator
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.output_concatenation import count_concatenation_nodes
from fuzzing.process_pool import map_in_processes
from fuzzing.rng import derive_seed

_BATCH = 64  # models; a second of work at most, and its results are some kilobytes


@dataclass(frozen=True)
class RunPlan:
    """The parameters of a run.

    seed    of the run; model i has the seed `derive_seed(seed, i)`
    corpus  the folder of the cases
    measured  the operators that coverage is measured of; None to measure nothing
    """

    generator: str
    settings: GeneratorSettings
    seed: int
    corpus: Path
    measured: OperatorSet | None = None


@dataclass(frozen=True)
class GeneratedModel:
    """One model. `new` is False if the corpus held it already."""

    index: int
    case: str
    seed: int
    nodes: int
    new: bool


@dataclass
class ModelBatch:
    """Models made by one process.

    generation_s, coverage_s   seconds, separately
    generation_cpu_s            CPU seconds of generation
    tally                   what the models cover, if measured
    """

    models: list[GeneratedModel] = field(default_factory=list)
    generation_s: float = 0.0
    generation_cpu_s: float = 0.0
    coverage_s: float = 0.0
    tally: Tally | None = None


def generate_batches(plan: RunPlan, count: int, jobs: int) -> Iterator[ModelBatch]:
    """Models 0 … count-1 in order, by `jobs` processes; few batches are held at a time.

    Raises UsageError for settings under which nothing can be made, InfrastructureError where the corpus
    cannot be written, or a process dies.
    """
    work = (range(first, min(first + _BATCH, count)) for first in range(0, count, _BATCH))
    generator = generators.get(plan.generator)(plan.settings)  # reports once what cannot be made
    if generators.is_sequential(plan.generator):
        return (generate_batch(plan, indices, generator) for indices in work)
    return map_in_processes(
        partial(generate_batch, plan),
        work,
        jobs,
        "a process that made models died, perhaps for want of memory; what it had written is kept: "
        "run again with fewer --jobs",
    )


def generate_batch(plan: RunPlan, indices: Iterable[int], generator: Generator | None = None) -> ModelBatch:
    """Makes and writes the models of these indices, by this generator or one of the plan."""
    generator = generator or _generator(plan.generator, plan.settings)
    made = ModelBatch(tally=None if plan.measured is None else Tally(plan.measured))
    corpus = Corpus(plan.corpus)
    for index in indices:
        begin, ran = time.perf_counter(), time.process_time()
        seed = derive_seed(plan.seed, index)
        generated = generator.generate(seed)
        case = _case(plan, index, seed, generated)
        new = _store(case, corpus)
        written = time.perf_counter()
        made.generation_s += written - begin
        made.generation_cpu_s += time.process_time() - ran
        made.models.append(
            GeneratedModel(
                index,
                case.id,
                seed,
                len(generated.graph.nodes) - count_concatenation_nodes(generated.graph),
                new,
            )
        )
        if made.tally is not None:
            graph_coverage.add_to_tally(generated, made.tally)
            made.coverage_s += time.perf_counter() - written
    return made


def _case(plan: RunPlan, index: int, seed: int, generated: GeneratedGraph) -> TestCase:
    test = f"{plan.generator}/{plan.seed}/{index}"
    origin = case_builder.CaseOrigin(plan.generator, _onnx_version())
    return case_builder.build_case(generated, seed, origin, test, initializers=plan.settings.initializers)


@lru_cache(maxsize=4)
def _generator(name: str, settings: GeneratorSettings) -> Generator:
    return generators.get(name)(settings)


@lru_cache(maxsize=1)
def _onnx_version() -> str:
    return version("onnx")


def _store(case: TestCase, corpus: Corpus) -> bool:
    try:
        return corpus.add(case)
    except OSError as error:
        raise InfrastructureError(
            f"cannot write to {corpus.root}: {error.strerror}; choose another folder with --out, or free "
            "what it needs, and run again: what is there is not made twice"
        ) from error
