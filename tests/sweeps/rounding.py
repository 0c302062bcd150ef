"""Rounding: a compiler that is right but for one rounding more of each number is not accused.

`python -m tests.sweeps.rounding --corpus DIR [--count N] [--seed N]`

The compilers are eager torch and ONNX's evaluator with a rounding behind each operation whose result is not
exact (`_rounding_torch`, `_rounding_onnx`), so that what is reported is a false alarm: a tie, a jump or a
number that cancels, which no rule of the oracles knows. Needs no compiler; a thousand cases take a minute or
two. Prints how many results moved, each accused case, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun
from fuzzing.execution import Execution
from fuzzing.outcomes import Outcome, Verdict

_HERE = Path(__file__).parent
_BACKENDS = {
    "OnnxModel": "_rounding_onnx.py",
    "TorchCall": "_rounding_torch.py",
    "TorchProgram": "_rounding_torch.py",
}


class _Run(ShardRun):
    """A run that counts the cases whose outputs are not exactly the library's."""

    moved = 0

    def _decide(self, case_id: str, case: TestCase, execution: Execution) -> Outcome:
        if execution.ending == "returned":
            self.moved += tuple(execution.outputs) != tuple(case.expected or ())
        return super()._decide(case_id, case, execution)


def main(argv: list[str]) -> int:
    """Runs the sweep; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.rounding", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000, help="cases of each compiler [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="draws the cases [%(default)s]")
    options = parser.parse_args(argv)
    corpus = Corpus(options.corpus)
    ids = sorted(corpus.ids())
    random.Random(options.seed).shuffle(ids)
    drawn: dict[str, list[str]] = {name: [] for name in _BACKENDS.values()}
    for case_id in ids:
        taken = drawn.get(_BACKENDS.get(corpus.get(case_id).program.kind, ""), [])
        if len(taken) < options.count:
            taken.append(case_id)
    accused = 0
    for name, cases in drawn.items():
        run = _Run(Shard(str(options.corpus), tuple(cases), str(_HERE / name), "sweep", sys.executable))
        # A crash is the evaluator's, which lacks some operators that node tests have results for.
        failing = [one for _, one in run.outcomes() if one.verdict is Verdict.WRONG_RESULT]
        for outcome in failing:
            origin = corpus.get(outcome.case).provenance
            print(f"{outcome.case[:16]} {origin.source} {origin.operator}: {outcome.summary}")
        print(f"{name}: {len(cases)} cases, {run.moved} moved, {len(failing)} accused", flush=True)
        accused += len(failing)
    return 1 if accused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
