"""Round trips: every model of ONNX's tests, read into a graph and written again, is the same program.

`python -m tests.sweeps.roundtrip [--newest]`

Reads and writes the models of the sources `onnx-node-tests`, `onnx-pytorch-tests` and `onnx-simple-tests`,
checks the result with ONNX, and runs both in ONNX's reference evaluator and, if it has the kernel, in
onnxruntime on the tests' inputs: all outputs must be bit-identical, also those of the canonical form. Output
types by specification must match ONNX's inference. --newest also converts each model to the newest opset and
counts the results. Takes a minute or two; exit code 1 if any model differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx

from fuzzing.errors import UnwritableError
from fuzzing.graph.canonical_form import canonicalize, digest
from fuzzing.graph.ir import Graph
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_writer import to_bytes, to_onnx
from fuzzing.graph.opset_conversion import convert_opset
from fuzzing.graph.type_inference import infer_output_types
from fuzzing.graph.types import ABSENT
from fuzzing.migrate import onnx_node_tests, onnx_pytorch_tests, onnx_simple_tests
from fuzzing.migrate.random_operators import is_random_model
from tests.support.graph_validation import types_agree, validate
from tests.support.reference_evaluation import all_same, in_onnxruntime, in_reference

Runner = Callable[[onnx.ModelProto, Mapping[str, Any]], list[Any]]


def main(arguments: list[str]) -> int:
    """Prints counts; 1 if any model differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--newest", action="store_true")
    newest = parser.parse_args(arguments).newest
    tests = [
        *onnx_node_tests.collect(),
        *onnx_pytorch_tests.collect(),
        *onnx_simple_tests.collect(),
    ]
    counts: Counter[str] = Counter()
    failures = 0
    for number, test in enumerate(tests):
        for line in _broken(test, counts, newest):
            failures += 1
            print(f"{test.name}: {line}")
        if number % 200 == 199:
            print(f"{number + 1} of {len(tests)} models", file=sys.stderr, flush=True)
    print(f"{len(tests)} models, {failures} failures")
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    return 1 if failures else 0


def _broken(test: Any, counts: Counter[str], newest: bool) -> Iterable[str]:
    model = test.model
    graph = from_onnx(model)
    validate(graph)
    again = to_onnx(graph)
    onnx.checker.check_model(again)
    counts["read, written, checked"] += 1
    yield from _mistyped(graph, counts)
    if to_bytes(from_onnx(again)) != to_bytes(graph):
        yield "the second round trip is not the first"
    small = canonicalize(graph)
    validate(small)
    if canonicalize(small) != small or digest(small) != digest(graph):
        yield "the canonical form is not stable"
    merged = to_onnx(small)
    onnx.checker.check_model(merged)
    for inputs, _ in test.data_sets or []:
        names = [item.name for item in model.graph.input]
        feeds = {name: _array(value) for name, value in zip(names, inputs, strict=False)}
        places = {
            f"v{edge}": feeds[name] for edge, name in zip(small.inputs, names, strict=True) if name in feeds
        }
        if is_random_model(model, {}):
            counts["draw random numbers, not compared"] += 1
            continue
        yield from _differing("the reference", in_reference, model, again, feeds, counts)
        yield from _differing("onnxruntime", in_onnxruntime, model, again, feeds, counts)
        yield from _differing("the reference, canonical", in_reference, model, merged, feeds, counts, places)
        if newest:
            _convert(graph, model, feeds, counts)


def _mistyped(graph: Graph, counts: Counter[str]) -> Iterable[str]:
    for node in graph.nodes:
        found = infer_output_types(graph, graph, node)
        if found is None:
            counts["nodes that no specification can type"] += 1
            continue
        counts["nodes typed by specifications"] += 1
        for edge, type_ in zip(node.outputs, found, strict=False):
            if graph.types[edge] != ABSENT and not types_agree(graph.types[edge], type_):
                yield f"{node.op} gives {graph.types[edge]}, its specification says {type_}"


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _differing(
    name: str,
    runner: Runner,
    model: onnx.ModelProto,
    again: onnx.ModelProto,
    feeds: Mapping[str, Any],
    counts: Counter[str],
    places: Mapping[str, Any] | None = None,
) -> Iterable[str]:
    try:
        wanted = runner(model, feeds)
    except Exception:  # noqa: BLE001 - what cannot run the model says so in a hundred ways
        counts[f"not run by {name}"] += 1
        return
    counts[f"run by {name}"] += 1
    try:
        found = runner(again, feeds if places is None else places)
    except Exception as error:  # noqa: BLE001 - and here it must not
        yield f"{name} runs it no longer: {error}"
        return
    if not all_same(wanted, found):
        yield f"{name} gives something else"


def _convert(graph: Graph, model: onnx.ModelProto, feeds: Mapping[str, Any], counts: Counter[str]) -> None:
    try:
        converted = to_onnx(convert_opset(graph, onnx.defs.onnx_opset_version()))
    except UnwritableError as error:
        counts[f"newest opset: {' '.join(str(error).split()[:3])} …"] += 1
        return
    differs = list(
        _differing("the reference, newest opset", in_reference, model, converted, feeds, Counter())
    )
    counts[f"newest opset: {'differs' if differs else 'converted'}"] += 1
    for _ in differs:
        print(f"at the newest opset {model.graph.name} gives something else", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
