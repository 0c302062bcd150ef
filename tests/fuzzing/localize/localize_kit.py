"""Cases, shards and facts of the tests of localization."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx.parser

from fuzzing.cases import OnnxModel, Program, Provenance, Tensor, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.localize.facts import Fact
from fuzzing.localize.localization import localize

LAYERED = str(Path(__file__).parent / "layered_backend.py")


def case_of(program: Program, *arrays: np.ndarray) -> TestCase:
    """A program on inputs called x, y, … in order."""
    given = tuple((name, Tensor.of(array)) for name, array in zip("xyz", arrays, strict=False))
    return TestCase(program, given, Provenance("tests", "", "", "", ""))


def onnx_case(graph: str, *arrays: np.ndarray, opset: int = 18) -> TestCase:
    """A graph in ONNX's textual syntax on inputs called x, y, … in order."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {graph}')
    return case_of(OnnxModel(model.SerializeToString()), *arrays)


def unary(*operators: str) -> TestCase:
    """A chain of operators of one input, on 0.5 to 2.0."""
    edges = ["x", *(f"e{place}" for place in range(len(operators) - 1)), "out"]
    nodes = "  ".join(
        f"{after} = {op}({before})"
        for op, before, after in zip(operators, edges[:-1], edges[1:], strict=True)
    )
    return onnx_case(
        f"g (float[4] x) => (float[4] out) {{ {nodes} }}", np.linspace(0.5, 2, 4, dtype=np.float32)
    )


def shard_of(backend: str, **options: str) -> Shard:
    """A shard of no case; the localization is given its case."""
    return Shard("", (), backend, "digest", sys.executable, options=options)


def localize_facts(case: TestCase, shard: Shard, *methods: str) -> dict[str, Fact]:
    """What a localization tells, by way."""
    return {fact.what: fact for fact in localize(case, shard, methods=methods).facts}
