"""Time and memory to rank 10,000, 30,000 and 100,000 operator instances.

The instances are real ones from the measured subjects (`_subjects`) and synthetic ones: a real operator with
each parameter drawn anew, half from the operator's known values, half freely of the same type. Each size is
ranked in a fresh process, which starts others where it may use several cores (`taskset -c 0` for one).
Prints wall and CPU seconds of the ranking and peak memory, of all processes, and the exponent of the growth.
The bars for `opera`: 100,000 in 10 s and 1 GB, a million in 60 s and 2 GiB (`--sizes
1000000`), exponent at most 1.25 (n log n has 1.09 from 30,000 to 100,000).
"""

from __future__ import annotations

# isort: off
from fuzzing.prioritize import single_threaded_blas  # noqa: F401 - before numpy
# isort: on

import argparse
import gc
import json
import math
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, get
from tests.benchmarks import _subjects
from tests.benchmarks._common import machine, verdict

_SIZES = (10_000, 30_000, 100_000)
#: Of `opera`: instances → seconds and MiB at most.
_BARS = {1_000_000: (60, 2048), 100_000: (10, 1024)}
_SAMPLE_S = 0.1
_DTYPES = ("float32", "float16", "float64", "int64", "int8", "bool", "complex64")
_DIMENSIONS = (0, 1, 2, 3, 5, 16, 64, 224, 1024)

Values = dict[tuple[str, str], list[Any]]  # (operator, parameter) → values met


def real() -> list[Instance]:
    """The instances of all measured subjects, each case once."""
    found = {one.instance.id: one.instance for name in _subjects.measured() for one in _subjects.load(name)}
    return list(found.values())


def instances(count: int, operators: int | None, seed: int) -> Iterator[Instance]:
    """Real instances, filled up with synthetic ones to `count`, of a limited number of operators."""
    known = real()
    names = list(dict.fromkeys(one.operator for one in known))
    if operators is not None:
        kept = set(random.Random(seed).sample(names, min(operators, len(names))))
        known = [one for one in known if one.operator in kept]
    values: Values = defaultdict(list)
    for one in known:
        for name, value in one.parameters:
            values[one.operator, name].append(value)
    yield from known[:count]
    rng = random.Random(seed)
    for number in range(count - len(known)):
        model = rng.choice(known)
        parameters = tuple(
            (name, _drawn(rng, value, values[model.operator, name])) for name, value in model.parameters
        )
        yield replace(model, id=f"{number:064x}", parameters=parameters)


def _drawn(rng: random.Random, value: Any, met: Sequence[Any]) -> Any:
    return rng.choice(met) if rng.random() < 0.5 else _freely(rng, value)


def _freely(rng: random.Random, value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return rng.random() < 0.5
    if isinstance(value, int):
        return rng.choice((-7, -1, 0, 1, 3, 12, 128, 4096))
    if isinstance(value, float):
        return rng.uniform(-2, 2)
    if isinstance(value, list):
        return [_freely(rng, item) for item in value]
    if isinstance(value, dict) and "tensor" in value:
        shape = [rng.choice(_DIMENSIONS) for _ in range(rng.randrange(6))]
        return {"tensor": [rng.choice(_DTYPES), shape]}
    if isinstance(value, dict) and "tuple" in value:
        return {"tuple": _freely(rng, value["tuple"])}
    return value


def rank(given: argparse.Namespace, count: int) -> dict[str, float]:
    """Ranks in this process; returns time and memory."""
    known = list(instances(count, given.operators, given.seed))
    strategy = get(given.strategy)
    gc.disable()  # as the command does
    wall, cpu = time.perf_counter(), time.process_time()
    with peak_memory() as peak:
        places = [ranked.instance_index for ranked in strategy(known, Context(seed=given.seed))]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert sorted(places) == list(range(len(known)))
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu += others.ru_utime + others.ru_stime
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"count": len(known), "wall": wall, "cpu": cpu, "mb": max(own, *peak)}


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Resident MB of this process and its children together, sampled during the block."""
    over, found = threading.Event(), [0.0]

    def resident(pid: str) -> float:
        with suppress(OSError):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            return pages * resource.getpagesize() / (1 << 20)
        return 0.0

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
            children = {pid for task in tasks for pid in (task / "children").read_text().split()}
            found.append(sum(map(resident, (str(os.getpid()), *children))))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def main(argv: Sequence[str]) -> int:
    """Prints a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks ranking")
    parser.add_argument("--strategy", default="opera")
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES)
    parser.add_argument("--operators", type=int, help="as if there were no more; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="rank the one size here, and print JSON")
    given = parser.parse_args(argv)
    if given.alone:
        print(json.dumps(rank(given, given.sizes[0])))
        return 0
    print(machine())
    reported: list[dict[str, float]] = []
    for size in given.sizes:
        options = ["--strategy", given.strategy, "--seed", str(given.seed), "--sizes", str(size), "--alone"]
        options += [] if given.operators is None else ["--operators", str(given.operators)]
        command = [sys.executable, "-m", "tests.benchmarks", "ranking", *options]
        reported.append(
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        )
        print(_line(reported), flush=True)
    largest = reported[-1]
    size = next((size for size in _BARS if largest["count"] >= size), None)
    if given.strategy != "opera" or size is None:
        return 0
    seconds, mb = _BARS[size]
    kept = largest["wall"] <= seconds and largest["mb"] <= mb and _exponent(reported) <= 1.25
    return verdict(kept, f"{size:,} instances in {seconds} s and {mb} MiB, exponent at most 1.25")


def _line(reported: Sequence[dict[str, float]]) -> str:
    last = reported[-1]
    growth = f"  exponent {_exponent(reported):.2f}" if len(reported) > 1 else ""
    return (
        f"{last['count']:7,.0f} instances  {last['wall']:6.2f} s  ({last['cpu']:6.2f} s of processor)  "
        f"{last['mb']:5.0f} MB{growth}"
    )


def _exponent(reported: Sequence[dict[str, float]]) -> float:
    """Exponent of the growth of CPU time between the last two sizes.

    0 with a single size.
    """
    if len(reported) < 2:
        return 0.0
    before, last = reported[-2:]
    return math.log(last["cpu"] / before["cpu"]) / math.log(last["count"] / before["count"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
