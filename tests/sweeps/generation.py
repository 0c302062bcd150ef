"""Checks generated models: valid, correctly typed, runnable, finite.

`python -m tests.sweeps.generation --count 10000 --nodes 1:10 [--operators isra] [--dtypes all] [--jobs 2]`

also takes the options of `python -m fuzzing.generate`. It checks for every model:

    checker    does onnx's full checker pass it?
    inference  does onnx's strict inference, with data propagation, from the inputs' types alone?
    types      is each type so inferred the graph's own?
    runs       does the backend run it without optimization, with every edge an output?
    shapes     does each edge have the graph's type and shape?
    finite     is each element of each edge a finite number?
    bounds     and within the generator's bounds?
    optimized  does the backend run the model with all optimizations, with finite outputs?

Prints the share of each, and every exception by operator and message with the indices of some models. After a
failed check only `optimized` still runs. Unsupported models are counted separately. Exit code 1 if any check
failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import onnx

from fuzzing import backends
from fuzzing.cases import Tensor, TestCase
from fuzzing.cases.values import Value
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution
from fuzzing.generate import __main__ as program
from fuzzing.generate import case_builder, generators, model_batches
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.types import ABSENT, TensorType
from fuzzing.oracles.decision import OracleInput
from fuzzing.oracles.unsupported import unsupported
from fuzzing.rng import derive_seed

QUESTIONS = ("checker", "inference", "types", "runs", "shapes", "finite", "bounds", "optimized")
_NAMES = {number: name for name, number in DTYPES.items()}
_CHUNK = 100
#: Tolerance for rounding in kernels; the specifications already account for their own arithmetic.
_SLACK = {"float16": 1e-3, "bfloat16": 1e-2}
#: Options that disable optimization; other backends run twice at their defaults.
_PLAIN = {"onnxruntime": {"optimization": "disabled"}}


@dataclass
class Found:
    """Results of a part of the sweep; `failed` maps check, operator and message to count and indices."""

    models: int = 0
    nodes: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    where: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)  # operators whose shapes onnx leaves open
    refused: Counter[str] = field(default_factory=Counter)  # what the backend says it does not support

    def answer(self, question: str, index: int, wrong: tuple[str, str] | None) -> bool:
        """Records one check: None passed, else the operator and the error."""
        self.asked[question] += 1
        if wrong is None:
            self.passed[question] += 1
            return True
        key = (question, *wrong)
        self.failed[key] += 1
        self.where.setdefault(key, []).append(index)
        self.where[key] = self.where[key][:3]
        return False

    def merge(self, other: Found) -> None:
        """Adds the results of another part."""
        self.models += other.models
        self.nodes += other.nodes
        for name in ("asked", "passed", "failed", "unknown", "refused"):
            getattr(self, name).update(getattr(other, name))
        for key, places in other.where.items():
            self.where[key] = (self.where.get(key, []) + places)[:3]


@dataclass
class Model:
    """A generated model, original and with every edge an output."""

    index: int
    generated: GeneratedGraph
    case: TestCase
    open: TestCase
    edges: tuple[int, ...]


def models(plan: model_batches.RunPlan, indices: range) -> Iterator[Model]:
    """The models of these indices."""
    generator = generators.get(plan.generator)(plan.settings)
    origin = case_builder.CaseOrigin(plan.generator, onnx.__version__)
    for index in indices:
        seed = derive_seed(plan.seed, index)
        made = generator.generate(seed)
        graph = made.graph
        edges = tuple(edge for node in graph.nodes for edge in node.outputs if graph.types[edge] != ABSENT)
        wide = replace(made, graph=replace(graph, outputs=edges))
        cases = [case_builder.build_case(one, seed, origin, str(index)) for one in (made, wide)]
        yield Model(index, made, cases[0], cases[1], edges)


def sweep(plan: model_batches.RunPlan, indices: range, backend: str) -> Found:
    """Checks the models with these indices."""
    found = Found()
    source = models(plan, indices)
    while chunk := list(islice(source, _CHUNK)):
        good = [model for model in chunk if _valid(model, found)]
        for place, execution in _run(backend, [model.open for model in good], _PLAIN.get(backend, {})):
            model = good[place]
            if why := _refusal(backend, model.open, execution):
                found.refused[why] += 1
            elif found.answer("runs", model.index, _failure(execution)):
                _look(model, execution, found)
        for place, execution in _run(backend, [model.case for model in good], {}):
            if _refusal(backend, good[place].case, execution):
                continue
            found.answer("optimized", good[place].index, _failure(execution) or _not_finite(execution))
        for model in chunk:
            found.models += 1
            found.nodes += len(model.generated.graph.nodes)
        print(f"{indices.start}: {found.models} models", file=sys.stderr, flush=True)
    return found


def _run(backend: str, cases: Sequence[TestCase], options: dict[str, str]) -> Iterator[tuple[int, Execution]]:
    supervisor: Supervisor[int] = Supervisor(WorkerCommand(sys.executable, backend, options=dict(options)))
    return supervisor.run(enumerate(cases))


def _valid(model: Model, found: Found) -> bool:
    proto = to_onnx(model.generated.graph)
    wrong = None
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        wrong = _told(str(error))
    if not found.answer("checker", model.index, wrong):
        return False
    outputs = [item.name for item in proto.graph.output]
    del proto.graph.output[:]
    for name in outputs:
        proto.graph.output.add().name = name
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        return found.answer("inference", model.index, _told(str(error)))
    found.answer("inference", model.index, None)
    return found.answer("types", model.index, _types_differ(model, inferred, found))


def _types_differ(model: Model, inferred: onnx.ModelProto, found: Found) -> tuple[str, str] | None:
    graph = model.generated.graph
    known = {item.name: item.type for item in (*inferred.graph.value_info, *inferred.graph.output)}
    for node in graph.nodes:
        for edge in node.outputs:
            mine = graph.types[edge]
            if mine == ABSENT or mine.shape is None:
                continue
            theirs = known[f"v{edge}"].tensor_type
            if _NAMES[theirs.elem_type] != mine.dtype:
                return node.op, f"inferred {_NAMES[theirs.elem_type]}, specified {mine.dtype}"
            if not theirs.HasField("shape"):
                found.unknown[node.op] += 1
                continue
            dims = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in theirs.shape.dim)
            if len(dims) != mine.rank:
                return node.op, "inferred another rank"
            for printed, dim in zip(dims, mine.shape, strict=True):
                if printed is None and dim is not None:
                    found.unknown[node.op] += 1
                elif printed != dim:
                    return node.op, "inferred another length"
    return None


def _look(model: Model, execution: Execution, found: Found) -> None:
    """Checks the value of every edge."""
    graph, ranges = model.generated.graph, model.generated.ranges
    producers = {edge: node.op for node in graph.nodes for edge in node.outputs}
    wrong: dict[str, tuple[str, str] | None] = {"shapes": None, "finite": None, "bounds": None}
    for edge, (_, value) in zip(model.edges, execution.outputs, strict=True):
        type_, op = graph.types[edge], producers[edge]
        if type_.shape is None or not isinstance(value, Tensor):
            continue
        if not _is(value, type_):
            wrong["shapes"] = wrong["shapes"] or (op, f"got {value.dtype}, rank {len(value.shape)}: {type_}")
            break
        numbers = _numbers(value)
        if not np.isfinite(numbers).all():
            wrong["finite"] = wrong["finite"] or (op, f"NaN or infinity in {type_.dtype}")
            break
        if numbers.size and edge in ranges:
            low, high = ranges[edge]
            slack = _SLACK.get(type_.dtype, 1e-5) * max(1.0, abs(low), abs(high))
            if numbers.min() < low - slack or numbers.max() > high + slack:
                wrong["bounds"] = op, f"{type_.dtype} beyond its bounds"
                break
    for question, answer in wrong.items():
        if not found.answer(question, model.index, answer):
            return


def _is(value: Tensor, type_: TensorType) -> bool:
    if value.dtype != type_.dtype or len(value.shape) != type_.rank:
        return False
    return all(dim in (None, length) for length, dim in zip(value.shape, type_.shape or (), strict=True))


def _numbers(value: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    if value.dtype == "bfloat16":
        return (value.array().astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return value.array().astype(np.float64)


def _not_finite(execution: Execution) -> tuple[str, str] | None:
    values: list[Value] = [value for _, value in execution.outputs]
    if all(np.isfinite(_numbers(value)).all() for value in values if isinstance(value, Tensor)):
        return None
    return "", "an output is not finite"


def _failure(execution: Execution) -> tuple[str, str] | None:
    if execution.ending == "returned":
        return None
    operator, message = _told(execution.message)
    return (
        operator,
        f"{execution.ending} in {execution.phase.value}: {execution.error} {execution.signal} {message}",
    )


def _refusal(backend: str, case: TestCase, execution: Execution) -> str:
    """The backend's message that something is unsupported; "" if there is none."""
    ruling = unsupported(OracleInput(case, execution, backends.get(backend), "default"))
    return "" if ruling is None else ruling.summary


def _told(message: str) -> tuple[str, str]:
    """The operator in a message, and its first line without details."""
    named = re.search(r"n\d+_([A-Z]\w*)|op_type:\s*\(?(\w+)|implementation for (\w+)\(", message)
    line = re.sub(r"v?n?\d+(\.\d+)?(e[-+]?\d+)?(_\w+)?", "#", message.strip().split("\n", 1)[0])
    return next(filter(None, named.groups()), "") if named else "", line[:150]


def _parts(count: int, jobs: int) -> list[range]:
    """Slices small enough to keep all processes busy."""
    size = max(_CHUNK, count // (jobs * 4))
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


def main(argv: Sequence[str]) -> int:
    """Runs the sweep."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.generation", add_help=False)
    parser.add_argument("--backend", default="onnxruntime", choices=backends.names())
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    mine, rest = parser.parse_known_args(argv)
    given = program.build_parser().parse_args([*rest, "--no-metrics", "--out", tempfile.gettempdir()])
    plan = program.parse_plan(given)
    begin, found = time.monotonic(), Found()
    parts = _parts(given.count, mine.jobs)
    with ProcessPoolExecutor(mine.jobs, get_context("spawn")) as pool:
        for part in pool.map(sweep, [plan] * len(parts), parts, [mine.backend] * len(parts)):
            found.merge(part)
    report(found, time.monotonic() - begin)
    if mine.json:
        shares = {question: found.passed[question] / max(found.asked[question], 1) for question in QUESTIONS}
        mine.json.write_text(json.dumps({"models": found.models, "nodes": found.nodes, "shares": shares}))
    return 1 if found.failed else 0


def report(found: Found, seconds: float) -> None:
    """Prints the results."""
    print(f"{found.models} models of {found.nodes} nodes in {seconds:.0f} s")
    for question in QUESTIONS:
        asked, passed = found.asked[question], found.passed[question]
        print(f"  {question:10} {passed:7} of {asked:7} {100 * passed / max(asked, 1):8.3f} %")
    for key, count in found.failed.most_common():
        question, operator, message = key
        print(f"  {count:6} {question} {operator}: {message}  [models {found.where[key]}]")
    if found.refused:
        reported = ", ".join(f"{why} {count}" for why, count in found.refused.most_common(12))
        print(f"  {found.refused.total()} models refused as unsupported, and not asked further: {reported}")
    if found.unknown:
        reported = ", ".join(f"{name} {count}" for name, count in found.unknown.most_common(12))
        print(f"  onnx leaves lengths open that the specification tells: {reported}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
