"""Over-merging on real bugs: rows of `docs/findings.md` that have one label.

    python -m tests.benchmarks signatures-findings [COMPILER …]

Each row of a compiler's section is a bug of its own and a case that nothing can be taken from. All run on the
installed compiler, and `signature` groups those that fail. Rows with one label are printed; each is a wrong
merge, unless the rows turn out to have one cause.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from fuzzing.deduplicate.strategies.base import DEFAULT, Failure, get_strategy
from fuzzing.entry_point import note
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from tests.benchmarks._common import verdict
from tests.benchmarks._findings_corpus import TITLES, read_cases


def failures(compiler: str) -> list[Failure]:
    """The rows of a compiler's section that fail."""
    cases = list({case.id: case for case in read_cases(compiler)}.values())
    with Evaluator(Shard("", (), compiler, "installed", sys.executable)) as evaluator:
        outcomes = evaluator.evaluate(cases)
    failed = [
        Failure(case, outcome, reduced=True)
        for case, outcome in zip(cases, outcomes, strict=True)
        if outcome.verdict.is_failure
    ]
    note(f"{compiler}: {len(failed)} of {len(cases)} rows fail")
    return failed


def merged(found: Sequence[Failure]) -> Iterator[list[Failure]]:
    """The failures that have one label with others."""
    groups: dict[str, list[Failure]] = {}
    for failure, label in zip(found, get_strategy(DEFAULT)(found), strict=True):
        groups.setdefault(label, []).append(failure)
    return (group for group in groups.values() if len(group) > 1)


def main(argv: Sequence[str]) -> int:
    """The benchmark's exit code."""
    parser = argparse.ArgumentParser(description="Which findings one signature merges.")
    parser.add_argument("compilers", nargs="*", metavar="COMPILER", help=f"of {', '.join(TITLES)}")
    given = parser.parse_args(argv).compilers
    if wrong := set(given) - set(TITLES):
        parser.error(f"no section for {', '.join(sorted(wrong))}")
    bugs = labels = 0
    for compiler in given or sorted(TITLES):
        found = failures(compiler)
        groups = list(merged(found))
        bugs += len(found)
        labels += len(found) - sum(len(group) - 1 for group in groups)
        for group in groups:
            print(f"{compiler}: {group[0].signature().title}")
            for failure in group:
                print(f"    {failure.case.provenance.test}")
    return verdict(labels == bugs, f"{bugs} bugs have {labels} labels")
