"""Does ONNX's reference evaluator judge well? Nodes of every operator, by it and by onnxruntime unoptimised.

`python -m tests.sweeps.judges [--opsets 13,17,21,25] [--nodes 6] [--dtypes float32,int64]`

Where both run a model of one node and give other types, shapes or plainly other values, one of them is wrong;
of what is listed here a person must find out which. `fuzzing/backends/_onnx_corrected.py` holds what was
corrected, `fuzzing.migrate.isra.UNJUDGED` what was not then. Takes a minute. Exit code 1 if they differ
in an operator not in that list.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fuzzing.cases import TestCase
from fuzzing.draws import derive
from fuzzing.errors import UsageError
from fuzzing.execute.execution import Execution
from fuzzing.execute.process import Command
from fuzzing.execute.supervisor import Supervisor
from fuzzing.generate import casing
from fuzzing.generate.isra import Settings, Solver
from fuzzing.graph import operators
from fuzzing.migrate.isra import UNJUDGED
from tests.sweeps.silence import agree


@dataclass(frozen=True)
class Trial:
    """A model of one node."""

    operator: str
    opset: int
    dtype: str
    case: TestCase


def trials(opsets: Sequence[int], dtypes: Sequence[str], nodes: int) -> list[Trial]:
    """So many nodes of every operator, opset and element type."""
    found = []
    for opset in opsets:
        for name in operators.at(opset):
            for dtype in dtypes:
                asked = Settings(
                    nodes=(1, 1), opset=opset, operators=(name,), dtypes=(dtype,), picking_rate=0.0
                )
                try:
                    solver = Solver(asked)
                except UsageError:  # it takes no such element type
                    continue
                for number in range(nodes):
                    seed = derive(number, name, opset, dtype)
                    origin = casing.Origin("sweep", "")
                    found.append(
                        Trial(name, opset, dtype, casing.case(solver.generate(seed), seed, origin, ""))
                    )
    return found


def run(backend: str, asked: Sequence[Trial], options: dict[str, str]) -> dict[int, Execution]:
    """What a backend makes of each."""
    supervisor: Supervisor[int] = Supervisor(Command(sys.executable, backend, options=dict(options)))
    return dict(supervisor.run((place, trial.case) for place, trial in enumerate(asked)))


def main(argv: Sequence[str]) -> int:
    """The command; see above."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.judges")
    parser.add_argument("--opsets", default="13,17,21,25")
    parser.add_argument("--dtypes", default="float32,int64")
    parser.add_argument("--nodes", type=int, default=6)
    given = parser.parse_args(argv)
    asked = trials([int(one) for one in given.opsets.split(",")], given.dtypes.split(","), given.nodes)
    judged, ran = run("onnx_reference", asked, {}), run("onnxruntime", asked, {"optimization": "disabled"})
    total, fails, differs = Counter(trial.operator for trial in asked), Counter[str](), Counter[str]()
    examples: dict[str, str] = {}
    for place, trial in enumerate(asked):
        mine, theirs = judged[place], ran[place]
        where = f"opset {trial.opset}, {trial.dtype}"
        if mine.ending != "returned":
            fails[trial.operator] += 1
            examples.setdefault(trial.operator, f"{where}: {mine.error} {mine.message[:90]!r}")
        elif theirs.ending == "returned" and not agree(mine.outputs, theirs.outputs):
            differs[trial.operator] += 1
            examples[trial.operator] = f"{where}: they differ"
    for name in sorted(examples):
        listed = " (listed)" if name in UNJUDGED else ""
        print(
            f"{name}{listed}: of {total[name]} {fails[name]} fail, {differs[name]} differ; {examples[name]}"
        )
    print(f"{len(asked)} nodes of {len(total)} operators, {fails.total()} fail, {differs.total()} differ")
    return 1 if set(differs) - set(UNJUDGED) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
