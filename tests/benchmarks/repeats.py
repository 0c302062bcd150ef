"""Processor time of repeating cases in fresh processes, forked and as interpreters of their own.

Each case of `--corpus` (or those of `--case`) runs three times, and where it fails on each level of the
backend's ablation: as campaigns do it, where each repeat is forked by another interpreter; as they do it with
one case of each signature, whose first repeat has an interpreter of its own; and with an interpreter for each
run. Verdicts must be equal.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from unittest.mock import patch

from fuzzing.cases import Corpus
from fuzzing.execute import shard_run
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from tests.benchmarks._common import machine, verdict
from tests.benchmarks._cpu_time import used_by_tree

_REPEATS = 3
#: The share of the time that may be left where all are forked: three imports remain of 18 for six cases.
_BAR = 0.5


def _make_unforked(*args: Any, **given: Any) -> Supervisor[Any]:
    return Supervisor(*args, **(given | {"interpreter": None}))


def _run(shard: Shard) -> tuple[float, Counter[tuple[str, str, str]]]:
    """Seconds of processor time, and how often each case had each verdict and component."""
    begin = used_by_tree()
    found = Counter(
        (outcome.case, outcome.verdict.value, outcome.evidence.component)
        for _, outcome in shard_run.ShardRun(shard).outcomes()
    )
    return used_by_tree() - begin, found


def main(argv: Sequence[str]) -> int:
    """Prints the seconds of both ways; 1 if forking saves too little or changes a verdict."""
    parser = argparse.ArgumentParser(prog="repeats", description=__doc__)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--case", action="append", default=[], help="id [default: the first --cases]")
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    ids = tuple(options.case or islice(Corpus(options.corpus).ids(), options.cases))
    given = dict(option.split("=", 1) for option in options.option)
    shard = Shard(
        options.corpus,
        ids,
        options.backend,
        "benchmark",
        sys.executable,
        options=given,
        fresh=True,
        forked=True,
        repeats=_REPEATS,
        ablate=True,
    )
    _run(shard)  # fills the compiler's own caches and the references
    forked, verdicts = _run(shard)
    first, mixed = _run(replace(shard, forked=False))
    with patch.object(shard_run, "Supervisor", _make_unforked):
        alone, others = _run(shard)
    failing = len({case for case, ended, _ in verdicts if ended != "pass"})
    print(
        f"{len(ids)} cases, {failing} fail: forked {forked:.1f} s, first repeats not forked {first:.1f} s, "
        f"not forked {alone:.1f} s"
    )
    if not verdicts == mixed == others:
        print(
            f"verdicts differ: {verdicts - mixed} {mixed - verdicts} {verdicts - others} {others - verdicts}"
        )
    kept = verdicts == mixed == others and forked <= _BAR * alone
    return verdict(kept, f"forking takes at most {_BAR:g} of the time: {forked / alone:.2f}")
