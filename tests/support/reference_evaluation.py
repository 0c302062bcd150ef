"""Runs models in ONNX's reference evaluator and in onnxruntime, and compares the results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator


def in_reference(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of ONNX's reference evaluator; exceptions propagate."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # some evaluations overflow or divide by zero on purpose
        found = ReferenceEvaluator(model).run(None, dict(feeds))
    assert isinstance(found, list)
    return found


def in_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of onnxruntime without optimization; exceptions propagate."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found: list[Any] = session.run(None, dict(feeds))
    return found


#: onnxruntime's messages for missing kernels; some appear only at run time.
_LACKING = ("NOT_IMPLEMENTED", "does not support double yet")


def where_implemented(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any] | None:
    """The outputs of onnxruntime; None if it lacks a kernel; other exceptions propagate.

    Also None for models with inputs of bfloat16, which it does not accept from numpy.
    """
    if any(item.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for item in model.graph.input):
        return None
    try:
        return in_onnxruntime(model, feeds)
    except Exception as error:
        if any(words in str(error) for words in _LACKING):
            return None
        raise


def same(one: Any, other: Any) -> bool:
    """Whether two results have equal types and elements; NaN equals NaN."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return all_same(one, other)
    if one is None or other is None:
        return one is other
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tobytes() == b.tobytes() if a.dtype != object else a.tolist() == b.tolist()


def all_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
