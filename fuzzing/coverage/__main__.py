"""`python -m fuzzing.coverage PATH… [--operators NAME] [--jobs N]`: what ONNX models cover of operators.

A PATH is a model, or a folder that holds `*.onnx` at any depth. Prints one JSON object a line on stdout,
progress on stderr:
    {"event": "progress", "note": TEXT}                        every few seconds
    {"event": "broken", "file": PATH, "reason": TEXT}          a file that is no model; it is left out
    {"event": "end", "models": N, "broken": N, "operators": NAME, "metrics": {…}, …}      see docs/coverage.md
Errors are printed by `fuzzing.entry_point`. Exit codes: 0 done, 2 a usage error, 3 an infrastructure failure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from onnx import TensorProto

from fuzzing.coverage import files, operators
from fuzzing.coverage.metrics import metrics_of, observe_operators, operator_levels
from fuzzing.coverage.tally import Tally
from fuzzing.entry_point import emit_event, emit_event_now, note, run_main
from fuzzing.errors import UsageError

_PROGRESS_S = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.coverage", description="Measure what ONNX models cover of operators."
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="ONNX files, or folders of some")
    parser.add_argument(
        "--operators", default="isra", metavar="NAME", help="operator set, or a file; a wrong name lists them"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes that read models")
    given = parser.parse_args(arguments)

    def work() -> None:
        if given.jobs < 1:
            raise UsageError(f"--jobs {given.jobs}: at least one process must read")
        run(given.paths, operators.get(given.operators), given.jobs)

    return run_main(parser.prog, work)


def run(paths: Iterable[Path], operator_set: operators.OperatorSet, jobs: int = 1) -> None:
    """Measures all models of `paths`, printing events."""
    begin = reported = time.monotonic()
    tally, broken = Tally(operator_set), 0
    for batch in files.read_batches(files.find_models(paths), operator_set, jobs):
        tally.merge(batch.tally)
        for path, reason in batch.broken:
            emit_event(event="broken", file=str(path), reason=reason)
            note(f"coverage: left out {path}: {reason}")
        broken += len(batch.broken)
        if time.monotonic() - reported >= _PROGRESS_S:
            reported = time.monotonic()
            _progress(f"{tally.models:,} models of {tally.nodes:,} nodes, {broken:,} files left out")
    seconds = round(time.monotonic() - begin, 3)
    emit_event(event="end", **to_json(tally), broken=broken, seconds=seconds)


def _progress(text: str) -> None:
    """Tells how far it is, at once, to who reads events and to who reads the log."""
    emit_event_now(event="progress", note=text)
    note(f"coverage: {text}")


def to_json(tally: Tally) -> dict[str, Any]:
    """All figures of a tally; docs/coverage.md names its parts."""
    observations, levels = tally.observations, operator_levels(tally)
    pairs: dict[str, dict[str, int]] = {}
    for (producer, consumer), count in sorted(observations.edges.items()):
        pairs.setdefault(producer, {})[consumer] = count
    return {
        "operators": tally.operators.name,
        "models": tally.models,
        "nodes": tally.nodes,
        "metrics": metrics_of(tally),
        "by_operator": {
            name: {"allowed": sorted(tally.operators.in_degrees[name])}
            | asdict(seen)
            | {"olc": levels[name]["OLC"]}
            for name, seen in observe_operators(tally).items()
        },
        "pairs": pairs,
        "outside": dict(observations.outside.most_common()),
        "closing": observations.closing,
        "nodes_of": _sorted(tally.nodes_of),
        "ranks": _ranks(tally),
        "dtypes": dict(_dtypes(tally).most_common()),
    }


def _sorted(counts: Counter[int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(counts.items())}


def _ranks(tally: Tally) -> dict[str, int]:
    """Ranks of consumed tensors."""
    known: Counter[int] = Counter()
    unknown = 0
    for one, count in tally.observations.types.items():
        if one.shape is None:
            unknown += count
        else:
            known[len(one.shape)] += count
    return _sorted(known) | ({"unknown": unknown} if unknown else {})


def _dtypes(tally: Tally) -> Counter[str]:
    found: Counter[str] = Counter()
    for one, count in tally.observations.types.items():
        name = TensorProto.DataType.Name(one.dtype) if one.dtype in TensorProto.DataType.values() else ""
        found[name.lower() if one.dtype and name else "unknown"] += count
    return found


if __name__ == "__main__":
    sys.exit(main())
