"""Share of DocTer's conforming inputs that torch accepts, per API; the bar: 300 APIs, 70 % on average."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from fuzzing.generate.docter import Mode, apis, report_tables, trials, value_profiles
from tests.benchmarks._common import machine, verdict

_APIS, _SHARE = 300, 0.7


def main(argv: Sequence[str]) -> int:
    """Prints the table and whether the bar was met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks docter")
    parser.add_argument("prefixes", nargs="*", help="of the APIs to draw from; all by default")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", default=Mode.CONFORMING.value, choices=[mode.value for mode in Mode])
    parser.add_argument("--profile", default="tame")
    args = parser.parse_args(argv)
    print(machine())
    plan = trials.TrialPlan(args.count, args.seed, Mode(args.mode), value_profiles.get(args.profile))
    names = [api for api in apis.list_apis() if not args.prefixes or api.startswith(tuple(args.prefixes))]
    start = time.perf_counter()
    found = list(trials.run(names, plan))
    seconds = time.perf_counter() - start
    for line in report_tables.format_acceptance(found):
        print(line)
    print(f"{len(found)} draws in {seconds:.0f} s, extraction included")
    acceptance_rates = report_tables.acceptance_rates(found).values()
    mean = sum(acceptance_rates) / len(acceptance_rates)
    kept = len(acceptance_rates) >= _APIS and mean >= _SHARE
    return verdict(
        kept,
        f"{len(acceptance_rates)} APIs, {mean:.0%} accepted on average; {_APIS} with {_SHARE:.0%} wanted",
    )
