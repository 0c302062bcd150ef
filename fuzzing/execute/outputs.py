"""The numbers of one case: what a compiler gives beside what it ought to give, element by element.

`python -m fuzzing.execute.outputs SHARD.json` runs the shard's one case once and prints, for each output of
numbers whose type and shape are right, a JSON line

    {"event": "output", "output": NAME, "dtype": …, "shape": […], "elements": N, "at": [N, …],
     "want": [X, …], "got": [X, …], "wrong": [BOOL, …]}

of at most SHOWN elements, those that are wrong before others, in the order of the tensor; `at` are their
places in it when it is read row by row. NaN and infinities are the texts "nan", "inf" and "-inf". Then
{"event": "end", "outputs": N}, which is 0 where the program did not run to its end. Errors are told
as `fuzzing.program` does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import backends
from fuzzing.cases import Corpus, Tensor, TestCase
from fuzzing.errors import UsageError
from fuzzing.execute.execution import Execution
from fuzzing.execute.library import Libraries
from fuzzing.execute.process import Command
from fuzzing.execute.references import References
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles.compare import bounds_of, matched, parts, within
from fuzzing.oracles.evidence import Pair
from fuzzing.program import ended, event

#: Elements of one output: what a picture of a page's width can tell apart.
SHOWN = 256


def main(arguments: Sequence[str]) -> int:
    """The command line of the module; see above."""

    def work() -> None:
        if len(arguments) != 1:
            raise UsageError("usage: python -m fuzzing.execute.outputs SHARD.json")
        count = 0
        for told in outputs(Shard.read(Path(arguments[0]))):
            event(event="output", **told)
            count += 1
        event(event="end", outputs=count)

    return ended("python -m fuzzing.execute.outputs", work)


def outputs(shard: Shard) -> Iterator[dict[str, Any]]:
    """What is told of each output. Raises UsageError for a case that its own library fails."""
    bare = Corpus(shard.corpus).get(shard.case)
    libraries = Libraries(Path(shard.corpus), shard.python, shard.limits)
    [(case, error)] = References(libraries).complete([bare])
    if error:
        raise UsageError(f"case {bare.id[:16]} has no reference: {error}")
    execution = _run(shard, case)
    if execution.ending == "returned":
        yield from _told(case, execution, shard.profile)


def _run(shard: Shard, case: TestCase) -> Execution:
    options = backends.get(shard.backend).settle(shard.options)
    command = Command(shard.python, shard.backend, shard.device, dict(options), shard.limits)
    [(_, execution)] = Supervisor[None](command, fresh=True).run([(None, case)])
    return execution


def _told(case: TestCase, execution: Execution, profile: str) -> Iterator[dict[str, Any]]:
    assert case.expected is not None
    for (name, want), got in zip(case.expected, matched(case.expected, execution.outputs), strict=True):
        for part, mine, reference in parts(name, got, want):
            if isinstance(mine, Tensor) and isinstance(reference, Tensor):
                yield from _numbers(case, Pair(part, mine, reference), profile)


def _numbers(case: TestCase, pair: Pair, profile: str) -> Iterator[dict[str, Any]]:
    got, want = pair.got, pair.want
    if (got.dtype, got.shape) != (want.dtype, want.shape) or pair.mine.dtype.kind not in "biuf":
        return
    wrong = ~within(pair, bounds_of(want, case.tolerance, profile)).ravel()
    first = np.flatnonzero(wrong)[:SHOWN]
    rest = np.flatnonzero(~wrong)[: SHOWN - len(first)]
    at = np.sort(np.concatenate([first, rest]))
    yield {
        "output": pair.name,
        "dtype": want.dtype,
        "shape": list(want.shape),
        "elements": int(wrong.size),
        "at": [int(place) for place in at],
        "want": [_plain(number) for number in pair.reference.ravel()[at]],
        "got": [_plain(number) for number in pair.mine.ravel()[at]],
        "wrong": [bool(one) for one in wrong[at]],
    }


def _plain(number: Any) -> float | str:
    value = float(number)
    return value if np.isfinite(value) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
