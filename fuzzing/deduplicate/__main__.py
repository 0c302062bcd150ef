"""`python -m fuzzing.deduplicate SHARD.json [--strategy S] [--keep] [--known FILE] [--out DIR]`: bugs.

The shard names cases and how they are run; with no cases named, all of its corpus. Each is run but those of
which `--known` holds an outcome, as a JSON list, of the shard's toolchain and configuration; each that fails
is reduced, unless `--keep` is given, within `--runs` candidates and `--seconds` each. Prints JSON
lines on stdout:

    {"event": "outcome", "done": N, "of": N, "failing": N}         after each few cases
    {"event": "reduced", "from": ID, "id": ID, "failure_reason": TEXT, "runs": N, "replayed": N}
    {"event": "bug", "label": TEXT, "key": KEY, "title": TEXT, "fields": {…}, "case": ID, "from": ID,
     "outcome": {…}, "size": BYTES, "reduced": …, "cases": [ID, …]} each bug, the most frequent first
    {"event": "end", "cases": N, "failing": N, "bugs": N, "strategy": S, "seconds": S}

`case` is the smallest of a bug's cases as they were reduced, and `from` what it was; `cases` are as they were
found. In `--out` reduced cases are kept in `corpus`, and in `journals` what candidates showed: begun again,
nothing is run twice. Errors are printed by `fuzzing.entry_point`. Exit codes: 0 after "end", 2 for a mistake
of the caller's, 3 if the toolchain cannot be started.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.deduplicate.strategies.base import DEFAULT, Failure, get_strategy
from fuzzing.entry_point import emit_event, emit_event_now, note, run_main
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Evidence, Outcome
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.reduced_case import reduced
from fuzzing.reduce.reduction import Reducer

#: Cases that are run before progress is shown.
_BATCH = 16


@dataclass(frozen=True)
class ReducedFailure:
    """A failure as it was found, and as it is grouped."""

    first: Failure
    last: Failure

    @property
    def size(self) -> int:
        """Bytes of the program that is left, by which the smallest of a bug is chosen."""
        return len(self.last.case.program.to_bytes())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.deduplicate", description="Tell which failures are one bug."
    )
    parser.add_argument("shard", type=Path, help="a shard, as JSON")
    parser.add_argument("--strategy", default=DEFAULT, help="what makes failures one bug")
    parser.add_argument("--keep", action="store_true", help="leave the cases as they are")
    parser.add_argument("--runs", type=int, default=Budget.runs, help="candidates to run for each case")
    parser.add_argument("--seconds", type=float, default=Budget.seconds, help="seconds for each case")
    parser.add_argument("--known", type=Path, help="file of outcomes that need not be seen again")
    parser.add_argument("--out", type=Path, help="folder for reduced cases and journals")
    given = parser.parse_args(arguments)

    def work() -> None:
        known = _read_outcomes(given.known) if given.known else []
        group(Shard.read(given.shard), given.strategy, _ReductionOptions(given), known)

    return run_main(parser.prog, work)


class _ReductionOptions:
    """The command line's options of reducing."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.wanted = not given.keep
        self.budget = Budget(given.runs, given.seconds)
        self.corpus = Corpus(given.out / "corpus") if given.out else None
        self.journals: Path | None = given.out / "journals" if given.out else None
        if self.journals is not None:
            self.journals.mkdir(parents=True, exist_ok=True)


def _read_outcomes(path: Path) -> list[Outcome]:
    """The outcomes of a file."""
    try:
        return [Outcome.from_json(item) for item in json.loads(path.read_bytes())]
    except (OSError, ValueError, InfrastructureError) as error:
        raise UsageError(f"cannot read the outcomes {path}: {error}") from None


def _select_usable(known: Sequence[Outcome], shard: Shard, configuration: str) -> dict[str, Outcome]:
    """The outcomes, by case, that a run would bring again: with evidence, of this toolchain and settings."""
    here = (backends.get(shard.backend).name, shard.toolchain, shard.device, configuration)
    return {
        item.case: item
        for item in known
        if (item.backend, item.toolchain, item.device, item.configuration) == here
        and item.evidence != Evidence()
    }


def group(shard: Shard, strategy: str, reducing: _ReductionOptions, known: Sequence[Outcome] = ()) -> None:
    """Runs the shard's cases but those of known outcome, and prints events; see the module."""
    label = get_strategy(strategy)
    begin = time.monotonic()
    corpus = Corpus(shard.corpus)
    ids = list(shard.cases or corpus.ids())
    with Reducer(shard, reducing.budget) as reducer:
        failing = _run_cases(corpus, ids, reducer, _select_usable(known, shard, reducer.configuration))
        found = [_reduce_failure(failure, reducer, shard, reducing) for failure in failing]
    bugs: dict[str, list[ReducedFailure]] = {}
    for item, name in zip(found, label([item.last for item in found]), strict=True):
        bugs.setdefault(name, []).append(item)
    for name, items in sorted(bugs.items(), key=lambda bug: (-len(bug[1]), bug[0])):
        emit_event(event="bug", label=name, **_bug_fields(items))
    seconds = time.monotonic() - begin
    emit_event(
        event="end", cases=len(ids), failing=len(found), bugs=len(bugs), strategy=strategy, seconds=seconds
    )


def _run_cases(
    corpus: Corpus, ids: Sequence[str], reducer: Reducer, known: Mapping[str, Outcome]
) -> Iterator[Failure]:
    """The cases that fail, as the reductions ask for them."""
    left, done, failing = iter(ids), 0, 0
    while batch := [corpus.get(case_id) for case_id in islice(left, _BATCH)]:
        ran = reducer.evaluate([case for case in batch if case.id not in known])
        outcomes = {**{outcome.case: outcome for outcome in ran}, **known}
        failures = [
            Failure(case, outcomes[case.id]) for case in batch if outcomes[case.id].verdict.is_failure
        ]
        done, failing = done + len(batch), failing + len(failures)
        emit_event_now(event="outcome", done=done, of=len(ids), failing=failing)
        note(f"{done} of {len(ids)} cases, {failing} fail")
        yield from failures


def _reduce_failure(
    failure: Failure, reducer: Reducer, shard: Shard, reducing: _ReductionOptions
) -> ReducedFailure:
    if not reducing.wanted:
        return ReducedFailure(failure, failure)
    case = failure.case
    journal = reducing.journals and reducing.journals / f"{case.id[:16]}-{shard.toolchain[:16]}.jsonl"
    small = reduced(reducer, case, failure.outcome, journal)
    if reducing.corpus is not None and small.reduced:
        reducing.corpus.add(small.case)
    counts = {"runs": small.runs, "replayed": small.replayed}
    emit_event_now(
        event="reduced", **{"from": case.id}, id=small.case.id, failure_reason=small.failure_reason, **counts
    )
    note(f"{case.id[:16]}: {small.failure_reason or f'reduced in {small.runs} runs'}")
    return ReducedFailure(failure, Failure(small.case, small.outcome, small.reduced, small.traits))


def _bug_fields(items: Sequence[ReducedFailure]) -> dict[str, Any]:
    """The description of a bug, by its simplest case, the smallest of those with the fewest needs."""
    signed = [(item, item.last.signature()) for item in items]
    least, signature = min(
        signed, key=lambda pair: (len(pair[1].fields.get("needs", ())), pair[0].size, pair[0].last.case.id)
    )
    return {
        "key": signature.key,
        "title": signature.title,
        "fields": signature.fields,
        "case": least.last.case.id,
        "from": least.first.case.id,
        "outcome": least.last.outcome.to_json(),
        "size": least.size,
        "reduced": least.last.reduced,
        "cases": [item.first.case.id for item in items],
    }


if __name__ == "__main__":
    sys.exit(main())
