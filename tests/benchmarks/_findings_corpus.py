"""The ONNX models of `docs/findings.md` as cases: bugs that today's releases have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from tests.sweeps.findings import PAGE, sections

#: Compiler → title of its section.
TITLES = {
    "tvm": "TVM from ONNX",
    "openvino": "OpenVINO from ONNX",
    "iree": "IREE from ONNX",
    "tinygrad": "tinygrad from ONNX",
    "onnxruntime": "ONNX Runtime",
}


def write_cases(compiler: str, folder: Path) -> int:
    """Adds the case of each line of a compiler's section to a corpus; returns how many."""
    corpus = Corpus(folder)
    cases = read_cases(compiler)
    for case in cases:
        corpus.add(case)
    return len({case.id for case in cases})


def read_cases(compiler: str) -> list[TestCase]:
    """The case of each line of a compiler's section."""
    [section] = [one for one in sections(PAGE.read_text(encoding="utf-8")) if one.title == TITLES[compiler]]
    cases: list[TestCase] = []
    for what, line in section.rows:

        def show(opset: int, graph: str, *_flags: Any, _name: str = what.strip(), **given: Any) -> None:
            cases.append(_case(_name, opset, graph, given))

        exec(line, {"show": show, "np": np, "f": "float32", "i": "int64"})
    return cases


def _case(name: str, opset: int, graph: str, given: dict[str, Any]) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {graph}')
    inputs = tuple([(item.name, Tensor.of(np.array(*given[item.name]))) for item in model.graph.input])
    operator = model.graph.node[0].op_type if model.graph.node else ""
    origin = Provenance("findings", name, operator, "onnx", onnx.__version__)
    return TestCase(OnnxModel(model.SerializeToString()), inputs, origin)
