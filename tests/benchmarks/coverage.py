"""Cost of measuring a model of 100 nodes by stage, and memory growth."""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Iterator, Sequence

import onnx.shape_inference
from onnx import ModelProto

from fuzzing.coverage import Tally, extract_scopes, operators
from tests.benchmarks._common import machine, verdict
from tests.fuzzing.coverage.coverage_kit import random_model

NODES = 100
LIMIT_MS = 1.0  # the promise: reading and counting, without protobuf's parsing and ONNX's inference
DISTINCT = 200  # models; those after them are these again, so what they show does not grow
ROUNDS = 5
SLACK_KB = 256  # of what the interpreter keeps for later


def main(argv: Sequence[str]) -> int:
    """The exit code: 0 if both bars are met."""
    parser = argparse.ArgumentParser(prog="coverage", description=__doc__)
    parser.add_argument("--models", type=int, default=4 * DISTINCT, help="of the check of memory")
    given = parser.parse_args(argv)
    print(machine())
    files = [random_model(seed, NODES).SerializeToString() for seed in range(DISTINCT)]
    best = [min(times) for times in zip(*(_round(files) for _ in range(ROUNDS)), strict=True)]
    for name, seconds in zip(("parse", "read", "count", "infer"), best, strict=True):
        print(f"{name:6} {1e3 * seconds / DISTINCT:.3f} ms a model of {NODES} nodes")
    own = 1e3 * (best[1] + best[2]) / DISTINCT
    grown = _grown(files, given.models)
    print(f"memory {grown:+.0f} KiB between {DISTINCT} and {given.models} models that show the same")
    kept = verdict(own < LIMIT_MS, f"{own:.2f} ms a model is less than {LIMIT_MS:g} ms")
    return kept | verdict(grown < SLACK_KB, f"memory grows by less than {SLACK_KB} KiB")


def _round(files: Sequence[bytes]) -> tuple[float, float, float, float]:
    """CPU seconds over all models to parse, read, count and infer shapes."""
    tally = Tally(operators.get("isra"))
    parse = read = count = infer = 0.0
    gc.collect()
    for data in files:
        times = [time.process_time()]
        model = ModelProto.FromString(data)
        times.append(time.process_time())
        scopes = extract_scopes(model)
        times.append(time.process_time())
        tally.add(scopes)
        times.append(time.process_time())
        onnx.shape_inference.infer_shapes(model)
        times.append(time.process_time())
        parse, read, count, infer = (
            total + after - before
            for total, before, after in zip((parse, read, count, infer), times, times[1:], strict=False)
        )
    return parse, read, count, infer


def _grown(files: Sequence[bytes], models: int) -> float:
    """Growth of a tally in KiB after the first DISTINCT models."""
    tally = Tally(operators.get("isra"))
    tracemalloc.start()
    before = 0
    for at, data in enumerate(_again(files, models)):
        if at == DISTINCT:
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
        tally.add(extract_scopes(ModelProto.FromString(data)))
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / 1024


def _again(files: Sequence[bytes], models: int) -> Iterator[bytes]:
    for at in range(models):
        yield files[at % len(files)]
