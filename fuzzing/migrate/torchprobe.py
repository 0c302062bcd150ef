"""TorchProbe: torch programs, mutated without changing their results (APLAS 2023)."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from fuzzing.cases import Provenance, TestCase, TorchProgram
from fuzzing.entry_point import note
from fuzzing.errors import UsageError
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.rng import Rng, derive_seed

if TYPE_CHECKING:
    from fuzzing.mutate.programs.guide import Line

NAME = "torchprobe"
LIBRARY = "torch"
SEED = 0
MUTANTS = 2000
#: The reward with which the compiler's lines guide the mutations.
GUIDED = "compiler-coverage"
#: The share of mutants that is traced: tracing one takes ten times as long as making it.
_SAMPLED = 0.25
#: New objects until garbage is collected, as in inductor's workers.
_GARBAGE = 50_000


@register_source(NAME, library=LIBRARY, needs="libcst expecttest")
def migrate(
    part: Selection | None = None,
    seed: int = SEED,
    count: int = MUTANTS,
    reward: str = "",
    feedback: str = "",
) -> Iterator[TestCase | Skip]:
    """The mutants of the seed, in order.

    reward    compiler-coverage to let the lines that mutants reach guide the mutations of the next; each part
              is guided by its own
    feedback  the backend whose lines they are; its package must be installed here
    """
    import torch

    from fuzzing.mutate.programs.mutant_names import format_seed_name

    if reward not in ("", GUIDED):
        raise UsageError(f"--reward {reward}: {NAME} has {GUIDED} alone; leave it out for none")
    if reward and not feedback:
        raise UsageError(f"--reward {reward} needs a compiler; name one with --feedback")
    torch.set_num_threads(1)
    numbers = (
        number for number in range(count) if part is None or part.contains(format_seed_name(number, seed))
    )
    with _rare_collection():
        if reward:
            yield from _guided(numbers, seed, feedback)
            return
        for number in numbers:
            yield make_case(number, seed)


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Within it garbage is collected rarely; with Python's threshold that takes an eighth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(_GARBAGE, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _guided(numbers: Iterator[int], seed: int, feedback: str) -> Iterator[TestCase | Skip]:
    from fuzzing.mutate.programs.guide import Guide
    from fuzzing.mutate.programs.mutant_names import MutantName
    from fuzzing.mutate.programs.mutants import make_mutant

    guide, tracer = Guide(), LineTracer(feedback)
    try:
        for number in numbers:
            rng = Rng(derive_seed(seed, "guide", number))
            name = guide.choose(MutantName(number, seed), rng)
            case = make_case(*name)
            if isinstance(case, TestCase) and rng.chance(_SAMPLED):
                guide.record(name, make_mutant(*name), tracer.trace(case))
            yield case
    finally:
        tracer.close()
    note(f"{NAME}: the traced mutants reached {len(guide.reached)} lines of {feedback}")


class LineTracer:
    """Runs cases in the backend's sandbox and tells the lines of its Python that they reach.

    Of a backend with rungs it is the last one before the whole compiler, which takes most of the time.
    """

    def __init__(self, backend: str) -> None:
        from fuzzing import backends
        from fuzzing.execute.supervisor import Supervisor
        from fuzzing.execute.worker_command import WorkerCommand

        below = list(backends.get(backend).rungs.values())[:-1]
        command = WorkerCommand(sys.executable, backend, options=below[-1] if below else {})
        self._supervisor: Supervisor[None] = Supervisor(command)

    def trace(self, case: TestCase) -> set[Line]:
        """The lines; none if the case kills the worker, which loses them."""
        from fuzzing.backends.base import LINES
        from fuzzing.backends.shared.line_recorder import parse_lines

        [(_, execution)] = self._supervisor.serve([(None, case)], {"coverage": True})
        texts = [name for kind, name in execution.notes or () if kind == LINES]
        return {(path, line) for path, lines in map(parse_lines, texts) for line in lines}

    def close(self) -> None:
        """Ends the worker."""
        self._supervisor.close()


def make_case(number: int, seed: int = SEED, extensions: tuple[int, ...] = ()) -> TestCase | Skip:
    """One mutant as a case; a Skip if it is not equal to its seed, which is a bug of a mutation."""
    from fuzzing.mutate.programs.mutant_names import MutantName
    from fuzzing.mutate.programs.mutants import make_mutant
    from fuzzing.mutate.programs.soundness import find_difference

    mutant, test = make_mutant(number, seed, extensions), MutantName(number, seed, extensions).format()
    difference = find_difference(mutant)
    if difference:
        steps = ", ".join(step.mutation for step in mutant.steps)
        return Skip(test, "a mutation changed the program's result: a bug of Assay", f"{steps}: {difference}")
    provenance = Provenance(NAME, test, "", LIBRARY, _release(), seed)
    return TestCase(TorchProgram(mutant.text), mutant.seed.inputs, provenance)


@cache
def _release() -> str:
    return version(LIBRARY)  # which reads and parses a file
