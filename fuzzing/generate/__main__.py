"""`python -m fuzzing.generate --generator isra --count N --out DIR`: models, as a corpus of cases.

Prints one JSON object a line on stdout, progress on stderr:
    {"event": "case", "id": ID, "seed": SEED, "nodes": N, "new": BOOL}         in the order of the models
    {"event": "end", "models": N, "new": N, "nodes": N, "seconds": S, "models_per_second": …,
     "nodes_per_second": …, "nodes_per_making_second": …, "nodes_per_cpu_second": …,
     "left_out": {OPERATOR: [DTYPE…]}, "measured": {"operators": NAME, "metrics": {…}}}
The same seed gives the same cases, whatever --jobs; cases already in the folder are listed, not rewritten.
A making second is a second of one process spent making and writing models, without coverage
(docs/coverage.md) and printing. A CPU second excludes waiting for other processes and for the disk.
Errors are shown by `fuzzing.entry_point`. Exit codes: 0 done, 2 usage error, 3 infrastructure error.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from fuzzing.coverage import Tally, metrics_of
from fuzzing.coverage import operators as sets
from fuzzing.entry_point import emit_event, note, run_main
from fuzzing.errors import UsageError
from fuzzing.generate import graph_coverage, model_batches, supported_ops
from fuzzing.generate.isra.settings import OPSET, PICKING_RATE, GeneratorSettings
from fuzzing.graph import operators
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.graph.types import ANY

_PROGRESS_S = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = build_parser().parse_args(arguments)

    def work() -> None:
        run(parse_plan(given), _at_least(given.count, 1, "--count"), _at_least(given.jobs, 1, "--jobs"))

    return run_main("python -m fuzzing.generate", work)


def run(plan: model_batches.RunPlan, count: int, jobs: int) -> None:
    """Makes `count` models, printing events."""
    begin = shown = time.monotonic()
    models = new = nodes = 0
    generation_s = generation_cpu_s = 0.0
    tally = None if plan.measured is None else Tally(plan.measured)
    for batch in model_batches.generate_batches(plan, count, jobs):
        for made in batch.models:
            emit_event(event="case", id=made.case, seed=made.seed, nodes=made.nodes, new=made.new)
            models, new, nodes = models + 1, new + made.new, nodes + made.nodes
        generation_s += batch.generation_s
        generation_cpu_s += batch.generation_cpu_s
        if tally is not None and batch.tally is not None:
            tally.merge(batch.tally)
        if time.monotonic() - shown >= _PROGRESS_S:
            shown = time.monotonic()
            note(
                f"generate: {models} of {count} models, {nodes} nodes, {nodes / (shown - begin):.0f} a second"
            )
    seconds = time.monotonic() - begin
    emit_event(
        event="end",
        generator=plan.generator,
        seed=plan.seed,
        models=models,
        new=new,
        nodes=nodes,
        seconds=round(seconds, 3),
        models_per_second=round(models / seconds, 1),
        nodes_per_second=round(nodes / seconds, 1),
        nodes_per_making_second=round(nodes / generation_s, 1),
        nodes_per_cpu_second=round(nodes / generation_cpu_s, 1),
        left_out={name: list(dtypes) for name, dtypes in plan.settings.left_out},
        measured=None if tally is None else {"operators": tally.operators.name, "metrics": metrics_of(tally)},
    )


def build_parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(prog="python -m fuzzing.generate", description="Generate models.")
    add, limits = made.add_argument, GraphLimits()
    add("--generator", default="isra", help="what makes them; a wrong name lists those there are")
    add("--count", type=int, required=True, metavar="N", help="how many")
    add("--out", type=Path, required=True, metavar="DIR", help="the folder that keeps them, as cases")
    add("--nodes", default="1:10", metavar="A:B", help="the least and the most nodes of a model")
    add("--seed", type=int, default=0, metavar="S", help="of all random choices")
    add("--operators", default="all", metavar="NAMES", help="isra, all, or names with commas")
    add("--opset", type=int, default=OPSET, metavar="O", help="of the models")
    add("--dtypes", default="float32", metavar="NAMES", help="element types of data, with commas; or all")
    add("--mixed", action="store_true", help="let nodes take edges of other element types too")
    add("--backend", default="", metavar="B", help="leave out what this compiler does not support")
    add("--picking-rate", type=float, default=PICKING_RATE, metavar="P", help="how often an edge is reused")
    add("--ranks", default="", metavar="A:B", help=f"of new tensors; {limits.min_rank}:{limits.max_rank}")
    add("--dims", default="", metavar="A:B", help=f"lengths; {limits.min_dim}:{limits.max_dim}")
    add("--patterns", action="store_true", help="use patterns of several operators too")
    add("--initializers", action="store_true", help="put the data into the models")
    add(
        "--concatenate-outputs",
        action="store_true",
        help="end each model in one output for each element type",
    )
    add("--zero-size", action="store_true", help="lengths may be 0 too")
    add("--scalars", action="store_true", help="ranks may be 0 too")
    add("--no-metrics", action="store_true", help="do not count what the models cover")
    add("--jobs", type=int, default=1, metavar="J", help="processes that share the work")
    return made


def parse_plan(given: argparse.Namespace) -> model_batches.RunPlan:
    """The plan that the options describe; raises UsageError."""
    newest = onnx.defs.onnx_opset_version()
    if not operators.OLDEST <= given.opset <= newest:
        raise UsageError(
            f"--opset {given.opset}: specifications are there for {operators.OLDEST} to {newest}"
        )
    settings = GeneratorSettings(
        nodes=_range(given.nodes, "--nodes", 1),
        opset=given.opset,
        operators=_operators(given.operators, given.opset),
        dtypes=_dtypes(given.dtypes),
        mixed=given.mixed,
        picking_rate=given.picking_rate,
        limits=_limits(given),
        concatenate_outputs=given.concatenate_outputs,
        initializers=given.initializers,
        patterns=given.patterns,
    )
    if given.backend:
        settings = _exclude_unsupported(settings, given.backend)
    if not 0 <= given.picking_rate <= 1:
        raise UsageError(f"--picking-rate {given.picking_rate}: a probability lies between 0 and 1")
    if not 0 <= given.seed < 1 << 64:
        raise UsageError(f"--seed {given.seed}: a seed lies between 0 and 2**64 - 1")
    measured = None if given.no_metrics else graph_coverage.select_operator_set(settings)
    return model_batches.RunPlan(given.generator, settings, given.seed, given.out.absolute(), measured)


def _exclude_unsupported(settings: GeneratorSettings, backend: str) -> GeneratorSettings:
    """The settings without what the backend refuses, which is printed on stderr."""
    names = settings.operators or tuple(operators.specifications(settings.opset))
    found = supported_ops.find_unsupported(backend, settings.opset, settings.dtypes)
    refused = {name: dtypes for name, dtypes in found.items() if name in names}
    whole = [name for name, dtypes in refused.items() if set(dtypes) >= set(settings.dtypes)]
    note(
        f"generate: {len(whole)} of {len(names)} operators left out, which {backend} does not support, "
        f"{len(refused) - len(whole)} for some element types"
    )
    return replace(settings, left_out=tuple(sorted(refused.items())))


def _limits(given: argparse.Namespace) -> GraphLimits:
    usual = GraphLimits()
    ranks = _range(given.ranks, "--ranks", 0) if given.ranks else (usual.min_rank, usual.max_rank)
    dims = _range(given.dims, "--dims", 0) if given.dims else (usual.min_dim, usual.max_dim)
    if given.scalars:
        ranks = (0, ranks[1])
    if given.zero_size:
        dims = (0, dims[1])
    return GraphLimits(min_rank=ranks[0], max_rank=ranks[1], min_dim=dims[0], max_dim=dims[1])


def _range(text: str, option: str, least: int) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
    if not least <= low <= high:
        raise UsageError(f"{option} {text}: write the least and the most, such as {max(least, 1)}:10")
    return low, high


def _operators(text: str, opset: int) -> tuple[str, ...]:
    if text == "all":
        return ()
    if text == "isra":
        known = operators.specifications(opset)
        return tuple(name for name in sets.get("isra").in_degrees if name in known)
    wanted = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not wanted:
        raise UsageError("--operators names none; write all, or names with commas, such as Add,Conv")
    for name in wanted:
        if name not in operators.pattern_specifications(opset):
            operators.get_specification(name, opset)
    return wanted


def _dtypes(text: str) -> tuple[str, ...]:
    if text == "all":
        return ANY
    wanted = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in wanted if name not in ANY]
    if unknown or not wanted:
        raise UsageError(f"--dtypes {text}: there are {', '.join(ANY)}; or all")
    return wanted


def _at_least(number: int, least: int, option: str) -> int:
    if number < least:
        raise UsageError(f"{option} {number}: must be at least {least}")
    return number


if __name__ == "__main__":
    sys.exit(main())
