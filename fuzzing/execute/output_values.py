"""The outputs of one case beside the reference, element by element.

`python -m fuzzing.execute.output_values SHARD.json` runs the shard's one case once and prints, for each
output of numbers whose type and shape are right, a JSON line

    {"event": "output", "output": NAME, "dtype": …, "shape": […], "elements": N, "at": [N, …],
     "want": [X, …], "got": [X, …], "wrong": [BOOL, …]}

of at most SHOWN elements, wrong ones preferred, in the order of the tensor; `at` are their flat indices in
row-major order. NaN and infinities are the texts "nan", "inf" and "-inf". Then {"event": "end", "outputs":
N}, with N = 0 if the program did not complete. Errors are printed as in `fuzzing.entry_point`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import backends
from fuzzing.cases import Corpus, Tensor, TestCase
from fuzzing.entry_point import emit_event, run_main
from fuzzing.errors import UsageError
from fuzzing.execute.reference_outputs import ReferenceOutputs
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution
from fuzzing.oracles.mismatches import OutputPair
from fuzzing.oracles.output_comparison import bounds_for, elements_within, match_outputs, split_sequences

#: Elements shown of one output: the resolution of a picture as wide as a page.
SHOWN = 256


def main(arguments: Sequence[str]) -> int:
    """The command line of the module."""

    def work() -> None:
        if len(arguments) != 1:
            raise UsageError("usage: python -m fuzzing.execute.output_values SHARD.json")
        count = 0
        for fields in outputs(Shard.read(Path(arguments[0]))):
            emit_event(event="output", **fields)
            count += 1
        emit_event(event="end", outputs=count)

    return run_main("python -m fuzzing.execute.output_values", work)


def outputs(shard: Shard) -> Iterator[dict[str, Any]]:
    """Summary of each output. Raises UsageError for a case that its own library fails."""
    bare = Corpus(shard.corpus).get(shard.case)
    kind = backends.get(shard.backend)
    reference_runners = ReferenceRunners(
        Path(shard.corpus),
        shard.python,
        shard.limits,
        kind.reference_options(kind.resolve_options(shard.options)),
    )
    [(case, error)] = ReferenceOutputs(reference_runners).complete([bare])
    if error:
        raise UsageError(f"case {bare.id[:16]} has no reference: {error}")
    execution = _run(shard, case)
    if execution.ending == "returned":
        yield from _describe_outputs(case, execution, shard.profile)


def _run(shard: Shard, case: TestCase) -> Execution:
    options = backends.get(shard.backend).resolve_options(shard.options)
    command = WorkerCommand(shard.python, shard.backend, shard.device, dict(options), shard.limits)
    [(_, execution)] = Supervisor[None](command, fresh=True).run([(None, case)])
    return execution


def _describe_outputs(case: TestCase, execution: Execution, profile: str) -> Iterator[dict[str, Any]]:
    assert case.expected is not None
    for (name, want), got in zip(case.expected, match_outputs(case.expected, execution.outputs), strict=True):
        for part, mine, reference in split_sequences(name, got, want):
            if isinstance(mine, Tensor) and isinstance(reference, Tensor):
                yield from _describe_numbers(case, OutputPair(part, mine, reference), profile)


def _describe_numbers(case: TestCase, pair: OutputPair, profile: str) -> Iterator[dict[str, Any]]:
    got, want = pair.got, pair.want
    if (got.dtype, got.shape) != (want.dtype, want.shape) or pair.mine.dtype.kind not in "biuf":
        return
    wrong = ~elements_within(pair, bounds_for(want, case.tolerance, profile)).ravel()
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
