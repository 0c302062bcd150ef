"""How early each strategy finds the known bugs of old compiler releases.

For each measured subject (`_subjects`), all strategies rank the same cases in the same repetitions, each with
its own seed and shuffle. Prints mean and standard deviation of APFD and RAUC-25, and in how many repetitions
a strategy beats random. Bugs are counted by conversion function, as in OPERA's paper, and by crash signature,
as in its code. Ends with the average over all tables, as in OPERA's paper. The bar: OPERA is above random.

`--measure SUBJECT` runs a subject's cases on its release (minutes) and stores the results.
`--change FILE --bugs FILE` adds a commit and its bugs as a subject, and the strategy `change`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev

from fuzzing.prioritize import change, coverage_measurement, suites
from fuzzing.prioritize.change import history
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.metrics import apfd, first_ranks, rauc
from fuzzing.prioritize.strategies import Context, get
from tests.benchmarks import _subjects
from tests.benchmarks._common import machine, verdict

_K = 0.25  # of RAUC, as the released script takes it


@dataclass(frozen=True)
class StrategyUnderTest:
    """A strategy with options and its name in the table."""

    name: str
    strategy: str
    options: tuple[tuple[str, str], ...] = ()
    needs: str = ""  # what the context must have


STRATEGIES = (
    StrategyUnderTest("random", "random"),
    StrategyUnderTest("source order", "source-order"),
    StrategyUnderTest("fast", "fast"),
    StrategyUnderTest("fast, tokens", "fast", (("fast.shingles", "tokens"),)),
    StrategyUnderTest("coverage-total", "coverage-total", needs="coverage"),
    StrategyUnderTest("coverage-additional", "coverage-additional", needs="coverage"),
    StrategyUnderTest(
        "coverage-additional, released",
        "coverage-additional",
        (("coverage.additional", "released"),),
        "coverage",
    ),
    StrategyUnderTest("opera-operator", "opera-operator"),
    StrategyUnderTest("opera-parameters", "opera-parameters"),
    StrategyUnderTest("opera-paper", "opera-paper"),
    StrategyUnderTest("opera", "opera"),
    StrategyUnderTest("change", "change", needs="change"),
)


@dataclass(frozen=True)
class Scores:
    """APFD and RAUC-25 of one contender, one for each repetition."""

    apfds: list[float] = field(default_factory=list)
    raucs: list[float] = field(default_factory=list)

    def add(self, ranks: Sequence[int], n: int) -> None:
        """Adds one repetition."""
        self.apfds.append(apfd(ranks, n))
        self.raucs.append(rauc(ranks, n, _K))


Bugs = Mapping[str, Hashable]  # case id → the bug that it exposes


def compare_strategies(
    instances: Sequence[Instance], counts: Mapping[str, Bugs], context: Context, repetitions: int
) -> dict[str, dict[StrategyUnderTest, Scores]]:
    """For each way to count bugs: all applicable strategies over the same shuffles."""
    found: dict[str, dict[StrategyUnderTest, Scores]] = {name: {} for name in counts}
    for strategy_under_test in STRATEGIES:
        if strategy_under_test.needs and getattr(context, strategy_under_test.needs) is None:
            continue
        for seed in range(1, repetitions + 1):
            shuffle = list(instances)
            random.Random(seed).shuffle(shuffle)
            own = replace(context, seed=seed, options=dict(strategy_under_test.options))
            order = [one.instance_index for one in get(strategy_under_test.strategy)(shuffle, own)]
            for name, bugs in counts.items():
                ranks = first_ranks(order, [bugs.get(one.id) for one in shuffle])
                found[name].setdefault(strategy_under_test, Scores()).add(ranks, len(instances))
        print(f"{strategy_under_test.name} has ranked {repetitions} times", file=sys.stderr)
    return found


def table(title: str, bugs: Bugs, found: Mapping[StrategyUnderTest, Scores]) -> dict[str, float]:
    """Prints one table; the mean APFD of each contender."""
    print(f"\n{title}: {len(bugs)} bad cases, {len(set(bugs.values()))} bugs")
    print(f"{'':30} {'APFD':>6} {'±':>6} {'RAUC-25':>8} {'±':>6}  better than random")
    scores = {strategy_under_test.name: one for strategy_under_test, one in found.items()}
    chance = scores["random"].apfds
    for name, one in scores.items():
        better = sum(mine > its for mine, its in zip(one.apfds, chance, strict=True))
        print(
            f"{name:30} {mean(one.apfds):6.3f} {stdev(one.apfds):6.3f} {mean(one.raucs):8.3f} "
            f"{stdev(one.raucs):6.3f}  {better} of {len(chance)}",
            flush=True,
        )
    return {name: mean(one.apfds) for name, one in scores.items()}


def average(tables: Sequence[Mapping[str, float]]) -> bool:
    """Prints each strategy's average over its tables; whether OPERA is above random."""
    print(f"\naverage APFD over {len(tables)} tables")
    for name in dict.fromkeys(name for one in tables for name in one):
        means = [one[name] for one in tables if name in one]
        better = sum(one[name] > one["random"] for one in tables if name in one)
        print(f"{name:30} {mean(means):6.3f}  above random in {better} of {len(means)}")
    return mean(one["opera"] for one in tables) > mean(one["random"] for one in tables)


def main(argv: Sequence[str]) -> int:
    """Prints a table for each subject and way to count bugs."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks prioritization")
    parser.add_argument("--subject", action="append", choices=sorted(_subjects.SUBJECTS), default=[])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--no-suite", action="store_true", help="as if nobody knew the compiler's own tests")
    parser.add_argument("--measure", choices=sorted(_subjects.SUBJECTS), help="run this subject's cases anew")
    parser.add_argument("--work", type=Path, default=Path("prioritization-work"), help="for --measure")
    parser.add_argument("--python", default="", help="for --measure: an interpreter that has the release")
    parser.add_argument("--change", type=Path, help="a commit, as `fuzzing.prioritize --change` takes it")
    parser.add_argument("--history", type=Path, help="what cases did before that commit")
    parser.add_argument("--bugs", type=Path, help="the bugs that the commit made: JSON, case id → bug")
    given = parser.parse_args(argv)
    if given.measure:
        _subjects.measure(given.measure, given.work, given.python)
        return 0
    print(machine())
    names = given.subject or _subjects.measured()
    tables = [one for name in names for one in _subject(name, given)]
    return verdict(average(tables), "opera's average APFD above random's")


def _subject(name: str, given: argparse.Namespace) -> list[dict[str, float]]:
    measured = _subjects.load(name)
    instances = [one.instance for one in measured]
    if given.bugs is not None:
        counts = {given.bugs.name: json.loads(given.bugs.read_text(encoding="utf-8"))}
    else:
        counts = {
            "by conversion function": {one.instance.id: one.converter for one in measured if one.converter},
            "by crash signature": {one.instance.id: one.signature for one in measured if one.signature},
        }
    found = compare_strategies(instances, counts, _context(name, given), given.repetitions)
    return [table(f"{name}, {len(instances)} cases, {way}", bugs, found[way]) for way, bugs in counts.items()]


def _context(name: str, given: argparse.Namespace) -> Context:
    subject = _subjects.SUBJECTS[name]
    frontend = name.rsplit("-", 1)[-1]
    coverage = _subjects.coverage_file(name)
    suite = f"{subject.backend}.{frontend}"
    return Context(
        suites={} if given.no_suite or suite not in suites.names() else {frontend: suites.load(suite)},
        change=None if given.change is None else change.read(given.change),
        history=None if given.history is None else history.read(given.history),
        coverage=coverage_measurement.load(coverage) if coverage.exists() else None,
        backend=subject.backend,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
