"""Accuracy of triage on old releases: bugs with known fixing releases.

    python -m tests.benchmarks signatures-releases --keep DIR --toolchain 2023.0=PYTHON --toolchain …

ONNX's node tests run on the first toolchain; those that fail are reduced there. Later toolchains run each
test and its reduced case; the release from which on it passes fixed it. If test and reduced case have
different fixing releases, the test had several bugs or the reduction slipped, and it is left out. Two
failures with different fixing releases (or one unfixed) are two bugs, so one label for both is wrong. Two
similar failures of one operator with the same fixing release may be one bug: different labels are printed but
not counted. Results are stored in `--keep`; an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from fuzzing.cases import Corpus
from fuzzing.deduplicate.strategies.base import Failure, get_strategy, names
from fuzzing.entry_point import note
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Budget
from fuzzing.reduce.reduced_case import reduced
from fuzzing.reduce.reduction import Reducer
from tests.benchmarks._common import machine, traits_from_json, traits_to_json, verdict

BACKEND = "openvino"
STILL = "still there"
_BATCH = 32
#: Tolerated share of pairs of distinct bugs with one label.
BAR = 0.005


@dataclass(frozen=True)
class Old:
    """A failure of the first release, original and reduced, with their fixing releases."""

    found: Failure
    small: Failure
    fixed_by: str
    small_fixed_by: str

    @property
    def slipped(self) -> bool:
        """Whether the test and its reduced case show different bugs."""
        return self.fixed_by != self.small_fixed_by

    @property
    def sort(self) -> tuple[str, str, str]:
        """Grouping key of failures that may be one bug: operator, verdict, fixing release."""
        return self.found.case.provenance.operator, self.small.outcome.verdict.value, self.fixed_by


def shard(python: str) -> Shard:
    """A shard of cases for a toolchain."""
    return Shard("", (), BACKEND, python, python)


class ResultStore:
    """Stored results: a corpus, and files of rows."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.tests, self.small = Corpus(folder / "tests"), Corpus(folder / "small")

    def rows(self, name: str) -> dict[str, Any]:
        """The rows of a file by their keys."""
        path = self._folder / f"{name}.jsonl"
        return dict(map(json.loads, path.read_text(encoding="utf-8").splitlines())) if path.exists() else {}

    def put(self, name: str, key: str, row: Any) -> None:
        """Keeps a row."""
        with (self._folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, row]) + "\n")


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))


def failing(kept: ResultStore, python: str) -> dict[str, Outcome]:
    """The tests that fail on a toolchain; runs them unless stored."""
    if next(kept.tests.ids(), None) is None:
        command = [
            sys.executable,
            "-m",
            "fuzzing.migrate",
            "onnx-node-tests",
            "--corpus",
            str(kept.tests.root),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    known = kept.rows("first")
    with Evaluator(shard(python)) as evaluator:
        left = [case_id for case_id in kept.tests.ids() if case_id not in known]
        for batch in _batches(left):
            for outcome in evaluator.evaluate([kept.tests.get(case_id) for case_id in batch]):
                kept.put("first", outcome.case, outcome.to_json() if outcome.verdict.is_failure else None)
        note(f"{len(left)} tests run")
    return {key: Outcome.from_json(row) for key, row in sorted(kept.rows("first").items()) if row}


def made_small(kept: ResultStore, python: str, found: dict[str, Outcome], seconds: float) -> None:
    """Reduces the failures."""
    known = kept.rows("small")
    with Reducer(shard(python), Budget(400, seconds)) as reducer:
        for place, (case_id, outcome) in enumerate(found.items(), 1):
            if case_id in known:
                continue
            small = reduced(reducer, kept.tests.get(case_id), outcome)
            kept.small.add(small.case)
            row = {"id": small.case.id, "outcome": small.outcome.to_json(), "reduced": small.reduced}
            row["traits"] = traits_to_json(small.traits)
            kept.put("small", case_id, row)
            note(f"{place} of {len(found)} reduced: {small.failure_reason or f'{small.runs} runs'}")


def later(
    kept: ResultStore, release: str, python: str, cases: dict[str, Corpus], passed: Collection[str]
) -> dict[str, str]:
    """The verdicts of cases, each with the corpus that holds it, on a later release.

    Cases that passed before and fail now are repeated in a fresh process, since an earlier case may have
    corrupted the first.
    """
    name = f"on-{release}"
    known = kept.rows(name)
    with Evaluator(shard(python)) as evaluator, Evaluator(replace(shard(python), fresh=True)) as fresh:
        for batch in _batches([case_id for case_id in cases if case_id not in known]):
            for first in evaluator.evaluate([cases[case_id].get(case_id) for case_id in batch]):
                again = first.verdict.is_failure and first.case in passed
                outcome = fresh.evaluate([cases[first.case].get(first.case)])[0] if again else first
                kept.put(name, outcome.case, outcome.verdict.value)
    note(f"run on {release}")
    return kept.rows(name)


def fixed_by(did: Sequence[tuple[str, str]]) -> str:
    """The release from which on all pass, of (release, verdict) in order; STILL if there is none."""
    found = STILL
    for release, did_there in reversed(did):
        if did_there != "pass":
            break
        found = release
    return found


def known_failures(
    kept: ResultStore, toolchains: dict[str, str], count: int, seconds: float
) -> Iterator[Old]:
    """The reduced failures of the first release with their fixing releases."""
    (_, first), *others = toolchains.items()
    found = dict(list(failing(kept, first).items())[:count])
    made_small(kept, first, found, seconds)
    rows = {
        case_id: row for case_id, row in kept.rows("small").items() if case_id in found and row["reduced"]
    }
    cases = dict.fromkeys(rows, kept.tests) | {row["id"]: kept.small for row in rows.values()}
    did: dict[str, dict[str, str]] = {}
    for release, python in others:
        passed = {case_id for rows_of in did.values() for case_id, it in rows_of.items() if it == "pass"}
        did[release] = later(kept, release, python, cases, passed)
    for case_id, row in rows.items():
        before = Failure(kept.tests.get(case_id), found[case_id])
        traits = traits_from_json(row["traits"])
        after = Failure(kept.small.get(row["id"]), Outcome.from_json(row["outcome"]), True, traits)
        was, by = (
            fixed_by([(release, did[release][item]) for release, _ in others])
            for item in (case_id, row["id"])
        )
        yield Old(before, after, was, by)


def shown(old: Old) -> str:
    """A failure in one line."""
    fields = old.small.signature().fields
    needs = ", ".join(need for need in fields["needs"] if not need.startswith("rank"))
    return f"{old.found.case.provenance.test} → {fields['operator']} [{needs}], {old.fixed_by}"


def main(argv: Sequence[str]) -> int:
    """The benchmark's exit code."""
    parser = argparse.ArgumentParser(description="How well failures of old releases are told apart.")
    parser.add_argument("--keep", type=Path, required=True, help="folder for what is known")
    parser.add_argument("--toolchain", action="append", required=True, help="RELEASE=PYTHON, oldest first")
    parser.add_argument("--count", type=int, default=1000, help="failures at most")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each reduction")
    given = parser.parse_args(argv)
    print(machine())
    toolchains = dict(item.split("=", 1) for item in given.toolchain)
    every = list(known_failures(ResultStore(given.keep), toolchains, given.count, given.seconds))
    olds = [old for old in every if not old.slipped]
    roots = sum(old.small.traits is not None and old.small.traits.root is not None for old in olds)
    one = f"{len(olds)} of them of one bug by their releases, {roots} with a root"
    print(f"{len(every)} failures of {next(iter(toolchains))}, reduced; {one}:")
    print(", ".join(f"{count} {release}" for release, count in Counter(old.fixed_by for old in olds).items()))
    pairs = list(combinations(range(len(olds)), 2))
    two = [(a, b) for a, b in pairs if olds[a].fixed_by != olds[b].fixed_by]
    maybe = [(a, b) for a, b in pairs if olds[a].sort == olds[b].sort]
    share = 1.0
    for name in names():
        labels = get_strategy(name)([old.small for old in olds])
        merged = [(a, b) for a, b in two if labels[a] == labels[b]]
        split = [(a, b) for a, b in maybe if labels[a] != labels[b]]
        print(
            f"{name:12} {len(set(labels)):4} bugs; {len(merged)} of {len(two)} pairs merged that are two; "
            f"{len(split)} of {len(maybe)} split that may be one"
        )
        if name == "signature":
            share = len(merged) / max(len(two), 1)
            reported = [f"merged  {shown(olds[a])}  |  {shown(olds[b])}" for a, b in merged]
            reported += [f"split   {shown(olds[a])}  |  {shown(olds[b])}" for a, b in split]
    print(*reported, sep="\n")
    return verdict(share <= BAR, f"at most {BAR:.1%} of the pairs that are two bugs have one label")
