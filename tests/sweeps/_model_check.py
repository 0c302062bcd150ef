"""Checks a model and its inputs by ONNX's checker and ONNX Runtime, and by nothing of Assay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime

from tests.sweeps._onnxruntime_limits import BUGS, LACKS

#: Reduction meets more of what it lacks than derived models do.
_UNSUPPORTED = re.compile(
    r"not (?:yet |currently )?(?:supported)|does not support|[Uu]nsupported|Only .* (?:is|are) supported"
)
#: By the element type's name, where numpy has none.
_FED = re.compile(r"tensor\((?:bfloat16|float8\w*|float4\w*|u?int[24]|complex\d+)\)")


class NotTakenError(Exception):
    """ONNX Runtime does not take the model's operators or types."""


def find_faults(data: bytes, given: Mapping[str, Any]) -> tuple[list[str], bool]:
    """What is wrong with a model, and whether ONNX Runtime could be asked.

    given  an array, a list of arrays or None for each input
    """
    model = onnx.load_model_from_string(data)
    faults = list(_check_statically(model))
    onnxruntime.set_default_logger_severity(4)
    try:
        outputs = _run(data, given)
    except NotTakenError:
        return faults, False
    except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
        return [*faults, f"onnxruntime: {str(error)[:400]}"], True
    return [*faults, *_find_wrong_shapes(model, outputs)], True


def _check_statically(model: onnx.ModelProto) -> Iterator[str]:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
        yield f"checker: {str(error)[:300]}"
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
        yield f"inference: {str(error)[:300]}"
        return
    declared = {item.name: _lengths(item) for item in model.graph.output}
    for item in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        if any(length is not None and length < 0 for length in _lengths(item) or ()):
            yield f"negative length: {item.name}"
        if not _agree(_lengths(item), declared.get(item.name)):
            yield f"inferred shape: {item.name} is {_lengths(item)}, declared {declared[item.name]}"


def _lengths(item: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    """The shape of a tensor; None for other values, and for an open rank."""
    type_ = item.type.tensor_type
    if not type_.HasField("shape"):
        return None
    return tuple(one.dim_value if one.HasField("dim_value") else None for one in type_.shape.dim)


def _agree(one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None) -> bool:
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(a == b or None in (a, b) for a, b in zip(one, other, strict=True))


def _run(data: bytes, given: Mapping[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        if any(_FED.search(item.type) for item in (*session.get_inputs(), *session.get_outputs())):
            raise NotTakenError
        found: list[Any] = session.run(None, {item.name: given[item.name] for item in session.get_inputs()})
    except Exception as error:
        operators = " ".join(node.op_type for node in onnx.load_model_from_string(data).graph.node)
        if (
            LACKS.search(str(error))
            or BUGS.search(f"{operators}: {error}")
            or _UNSUPPORTED.search(str(error))
        ):
            raise NotTakenError from error
        raise
    return found


def _find_wrong_shapes(model: onnx.ModelProto, outputs: list[Any]) -> Iterator[str]:
    for item, found in zip(model.graph.output, outputs, strict=True):
        if isinstance(found, np.ndarray) and not _agree(_lengths(item), found.shape):
            yield f"computed shape: {item.name} is {found.shape}, declared {_lengths(item)}"
