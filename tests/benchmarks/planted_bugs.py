"""Bugs planted in Dynamo and AOTAutograd that mutated programs find; the bar: all but two, in 10 CPU-minutes.

Each plant is a forked process that runs mutants of one seed until the compiled result differs from eager
torch's, or the compiler raises. Mutants that fail without a plant are left out.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from fuzzing.backends.inductor import Inductor
from fuzzing.backends.torch_eager import TorchEager
from fuzzing.cases import Tensor, TestCase
from fuzzing.migrate.torchprobe import make_case
from tests.benchmarks._common import machine
from tests.benchmarks._planted_torch_bugs import PLANTS, Plant

#: Of the largest element: planted bugs change more than roundings.
_TOLERANCE = 2e-2


def failure(case: TestCase, options: Mapping[str, str]) -> str:
    """How the compiled program differs from the eager one; "" if it does not."""
    eager, compiled, inputs = TorchEager(), Inductor(), list(case.values())
    eager.load("CPU", Inductor.reference_options(Inductor.resolve_options(dict(options))))
    compiled.load("CPU", dict(options))
    try:
        wanted = eager.run(eager.convert(case.program, inputs), inputs)
    except RuntimeError:  # the program has no gradient
        return ""
    try:
        found = compiled.run(compiled.compile(compiled.convert(case.program, inputs)), inputs)
    except Exception as error:  # noqa: BLE001 - the compiler's, and so what is looked for
        return type(error).__name__
    for (_, one), (_, other) in zip(found, wanted, strict=True):
        assert isinstance(one, Tensor)
        assert isinstance(other, Tensor)
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return "type"
        mine, theirs = one.array().astype(complex), other.array().astype(complex)
        if not np.array_equal(np.isfinite(mine), np.isfinite(theirs)):
            return "value"
        mine, theirs = mine[np.isfinite(mine)], theirs[np.isfinite(theirs)]
        if mine.size and np.abs(mine - theirs).max() > _TOLERANCE * max(1e-3, np.abs(theirs).max()):
            return "value"
    return ""


def mutants(seed: int) -> Iterator[TestCase]:
    """The mutants of a seed, without end."""
    number = 0
    while True:
        case = make_case(number, seed)
        number += 1
        if isinstance(case, TestCase):
            yield case


def first_failure(
    plant: Plant | None, cases: Sequence[TestCase], options: Mapping[str, str], until: float
) -> str:
    """The index of the first mutant that fails and how, with a plant or without; "" if none does in time."""
    if plant is not None:
        plant.install()
    for place, case in enumerate(cases):
        found = failure(case, options)
        if found:
            return f"{place} {found}"
        if time.process_time() > until:
            break
    return ""


def in_child(
    plant: Plant | None, cases: Sequence[TestCase], options: Mapping[str, str], seconds: float
) -> str:
    """`first_failure` in a process of its own, with which the plant ends; for at most so much CPU time."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            until = time.process_time() + seconds
            os.write(into, first_failure(plant, cases, options, until).encode())
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    with os.fdopen(out) as reported:
        return reported.read()


def search(plant: Plant, cases: Sequence[TestCase], seconds: float) -> str:
    """Which mutant found the plant, and after how long; "" if none did."""
    start, begin = 0, _child_seconds()
    while (left := seconds - (_child_seconds() - begin)) > 0:
        found = in_child(plant, cases[start:], plant.options, left)
        if not found:
            return ""
        place, how = found.split()
        spent, start = _child_seconds() - begin, start + int(place) + 1
        if not in_child(None, cases[start - 1 : start], plant.options, seconds):
            return f"{how:24} mutant {start:4}  {spent:6.1f} s"
    return ""


def _child_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmark; exit code 1 if fewer plants are found than the bar allows."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks planted-bugs", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="CPU seconds for each plant")
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plant", default="", help="only plants whose name contains this")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    source = mutants(given.seed)
    cases = [next(source) for _ in range(given.mutants)]
    plants = [plant for plant in PLANTS if given.plant in plant.name]
    found = 0
    for plant in plants:
        how = search(plant, cases, given.seconds)
        found += bool(how)
        print(f"{plant.name:34} {how or 'not found'}", flush=True)
    print(f"{found} of {len(plants)} found with {len(cases)} mutants; {machine()}")
    return 0 if found >= len(plants) - 2 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
