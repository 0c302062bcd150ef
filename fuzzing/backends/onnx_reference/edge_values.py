"""The elements of all edges of an ONNX model, as ONNX's evaluator computes them.

Rules about operands ask for shapes and numbers that are computed when a model runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase
from fuzzing.cases.values import RAW_DTYPES

#: Larger models, in bytes of program and inputs, are not run; nor are those of types that numpy lacks.
_MOST = 1 << 22


def compute_edges(case: TestCase) -> dict[str, np.ndarray[Any, Any]]:
    """Each tensor that a node of the main graph computes, by name; none if the evaluator fails."""
    import onnx

    assert isinstance(case.program, OnnxModel)
    named = [(name, value.draw() if isinstance(value, Recipe) else value) for name, value in case.inputs]
    given = {name: value for name, value in named if isinstance(value, Tensor)}
    sizes = [len(value.data) for value in given.values()]
    if len(case.program.model) + sum(sizes) > _MOST or any(one.dtype in RAW_DTYPES for one in given.values()):
        return {}
    reference = OnnxReference()
    reference.load("CPU", {})
    try:
        model = onnx.load_model_from_string(case.program.model)
        names = [name for node in model.graph.node for name in node.output if name]
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        evaluator = reference.compile(model)
        feeds = {name: value.array() for name, value in given.items()}
        with np.errstate(all="ignore"):
            found = evaluator.run(None, feeds)
    except Exception:  # noqa: BLE001 - whatever the evaluator raises
        return {}
    return {name: np.asarray(value) for name, value in zip(names, found, strict=True) if _is_tensor(value)}


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))
