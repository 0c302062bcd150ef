"""Checks that mutations are sound: mutants parse, run, and equal their seeds in eager torch.

`python -m tests.sweeps.mutants --count 10000 [--seed 0] [--seconds 600]`

Prints the number of mutants, of syntax errors and of mismatches with the mutations of each, how often each
mutation was applied, and CPU seconds. Exit code 1 if any mutant is wrong.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
from collections import Counter
from collections.abc import Sequence

import torch

from fuzzing.mutate.programs.mutants import make_mutant
from fuzzing.mutate.programs.soundness import find_difference


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the sweep; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    applied: Counter[str] = Counter()
    wrong: list[str] = []
    syntax_errors = done = 0
    begin, busy = time.monotonic(), time.process_time()
    for number in range(given.count):
        if time.monotonic() - begin > given.seconds:
            break
        mutant = make_mutant(number, given.seed)
        done += 1
        steps = [step.mutation for step in mutant.steps]
        applied.update(steps)
        try:
            ast.parse(mutant.text)
        except SyntaxError:
            syntax_errors += 1
        difference = find_difference(mutant)
        if difference:
            wrong.append(f"{given.seed}/{number} {steps}: {difference}")
            print(wrong[-1], flush=True)
    print(
        f"{done} mutants, {syntax_errors} syntax errors, {len(wrong)} mismatches, "
        f"{sum(applied.values()) / max(done, 1):.2f} mutations each, "
        f"{time.process_time() - busy:.0f} s of CPU\n{dict(applied.most_common())}"
    )
    return 1 if wrong or syntax_errors else 0


if __name__ == "__main__":
    sys.exit(main())
