"""Results that the ONNX standard leaves open: integer overflow, division by zero, order, ambiguous text.

The standard leaves these to the implementation, and in C they are undefined behavior, so compilers need not
agree. The evaluator here puts a chosen number wherever such a result arises. Two runs with two numbers show
which elements of the outputs depend on one: those that differ. Needs onnx; runs in the reference worker.

    Div, Mod        integer, by zero; the least number by -1
    Pow             an integer to a negative integer
    Cast, CastLike  NaN, an infinity, or a float beyond the integer type's range, to an integer
    BitShift        by less than 0, or by the type's width or more; defined since opset 28
    Add, Sub, Mul, Neg, Abs, Pow, Sum, ReduceSum, ReduceSumSquare, ReduceL1, ReduceProd, CumSum, MatMul
                    signed integers whose result does not fit; unsigned ones wrap by definition
    ReduceMean      over nothing
    QLinearConv     a tie, by an odd zero point: rounded before it is added, as QuantizeLinear does and
                    onnxruntime, or after, as ONNX's evaluator; its text does not say
    GridSample, Resize, Upsample, Gemm, Pow, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMean, Shrink
                    integers that are no integers before: how they are rounded
    RoiAlign        mode "max": of the interpolated values, as in the text, OpenVINO and TVM, or of the
                    weighted corners, as in ONNX's evaluator and onnxruntime (onnx issue 4764)
    TopK            with `sorted` 0: the order
"""

from __future__ import annotations

from functools import cache
from typing import Any, Tuple

import numpy as np

_OVERFLOWING = frozenset(
    {"Add", "Sub", "Mul", "Neg", "Abs", "Sum", "ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceProd"}
    | {"CumSum", "MatMul"}
)
_SHIFTS_DEFINED = 28  # the first opset whose BitShift defines every shift
_FINER = 1 << 20  # parts of one, by which half of one is told from a number beside it; exact in float32
#: Operators that may compute fractions of integers, by how many operands they compute with.
_ROUNDING = {
    "Gemm": 3,
    "GridSample": 1,
    "Pow": 1,
    "ReduceL2": 1,
    "ReduceLogSum": 1,
    "ReduceLogSumExp": 1,
    "ReduceMean": 1,
    "Resize": 1,
    "Shrink": 1,
    "Upsample": 1,
}
_WATCHED = (
    _OVERFLOWING
    | set(_ROUNDING)
    | {
        "Div",
        "Mod",
        "Cast",
        "CastLike",
        "BitShift",
        "QLinearConv",
        "RoiAlign",
        "TopK",
    }
)


def evaluator(base: Any, fill: int) -> Any:
    """The class of evaluators, derived from this one, that put `fill` wherever the result is open."""

    class Filling(base):  # type: ignore[misc]
        """Wraps the implementations of the watched operators, also in subgraphs and functions."""

        def _load_impl(self, node: Any, *rest: Any) -> Any:
            found = super()._load_impl(node, *rest)
            watched = node.domain in ("", "ai.onnx") and node.op_type in _WATCHED
            return _filling(found, node.op_type, fill) if watched and isinstance(found, type) else found

    return Filling


@cache
def _filling(implementation: Any, op_type: str, fill: int) -> Any:
    def run(self: Any, *inputs: Any, **attributes: Any) -> Tuple[Any, ...]:
        given = _defined_inputs(op_type, inputs)
        with np.errstate(all="ignore"):
            results = implementation._run(self, *given, **attributes)
            result = np.asarray(results[0])
            if op_type == "ReduceMean" and result.size and not np.size(inputs[0]):
                return (np.full_like(result, fill),)
            if op_type == "TopK":
                return _in_another_order(results, attributes) if fill else tuple(results)
            if op_type == "RoiAlign" and attributes.get("mode") == "max":
                return (result + result.dtype.type(fill),)
            if op_type == "QLinearConv":
                return (
                    _ties_after_zero(implementation, self, given, attributes, result) if fill else result,
                )
            if result.dtype.kind not in "iu":
                return tuple(results)
            open_ = _left_open(implementation, self, op_type, inputs, attributes, result)
        if open_ is None or not np.any(open_):
            return tuple(results)
        return (np.where(open_, result.dtype.type(fill), result), *results[1:])

    return type(implementation.__name__, (implementation,), {"_run": run})


def _in_another_order(results: Any, attributes: Any) -> Tuple[Any, ...]:
    """What TopK found, each element in another place where it may."""
    if attributes.get("sorted", 1):
        return tuple(results)
    return tuple([np.roll(result, 1, attributes.get("axis", -1)) for result in results])


def _ties_after_zero(
    implementation: Any, node: Any, inputs: Tuple[Any, ...], attributes: Any, result: Any
) -> Any:
    """What QLinearConv gives where ties are rounded to even after the zero point is added."""
    scale, zero = inputs[6], np.asarray(inputs[7])
    finer = scale / scale.dtype.type(_FINER)
    [parts] = implementation._run(node, *inputs[:6], finer, np.int64(0), *inputs[8:], **attributes)
    # A rounding's neighbor is another number with an odd zero point only.
    ties = (parts % _FINER == _FINER // 2) & (zero.astype(np.int64) % 2 == 1)
    limits = _range(zero.dtype)
    other = np.clip(_to_odd(parts) + zero.astype(np.int64), *limits).astype(zero.dtype)
    return np.where(ties, other, result)


def _to_odd(parts: Any) -> Any:
    """The odd neighbor of each tie, which a number of `_FINER` parts is."""
    below = parts // _FINER
    return np.where(below % 2 == 1, below, below + 1)


def _defined_inputs(op_type: str, inputs: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The inputs, with harmless values where numpy itself would fail."""
    if op_type == "Pow" and all(array.dtype.kind in "iu" for array in inputs):
        return inputs[0], np.maximum(inputs[1], 0)
    return inputs


def _left_open(
    implementation: Any, node: Any, op_type: str, inputs: Tuple[Any, ...], attributes: Any, result: Any
) -> Any:
    """Mask of the elements of an integer result that are left open; None if none is."""
    first = np.asarray(inputs[0])
    if op_type in ("Cast", "CastLike"):
        return _beyond(np.trunc(first.astype(np.float64)), result.dtype) if _is_float(first) else None
    if op_type == "BitShift":
        if node.run_params["opsets"].get(node.onnx_node.domain, 0) >= _SHIFTS_DEFINED:
            return None
        by = inputs[1]
        return np.broadcast_to((by < 0) | (by >= 8 * first.dtype.itemsize), result.shape)
    if op_type in ("Div", "Mod"):
        least = (first == _range(first.dtype)[0]) & (inputs[1] == -1) if first.dtype.kind == "i" else False
        return (inputs[1] == 0) | least
    if op_type == "Pow" and inputs[1].dtype.kind in "iu" and first.dtype.kind in "iu":
        negative = np.broadcast_to(inputs[1] < 0, result.shape)
        return negative | _beyond(np.power(first.astype(np.float64), inputs[1]), result.dtype)
    if op_type in _ROUNDING:
        return _between_integers(implementation, node, inputs, attributes, _ROUNDING[op_type])
    return _overflow(implementation, node, inputs, attributes, result)


def _between_integers(
    implementation: Any, node: Any, inputs: Tuple[Any, ...], attributes: Any, operands: int
) -> Any:
    """Mask of the elements that are no integers before they are rounded, in float64 or in float32."""
    found = np.False_
    for dtype in (np.float64, np.float32):
        given = [
            array.astype(dtype) if array is not None and place < operands else array
            for place, array in enumerate(inputs)
        ]
        [exact, *_] = implementation._run(node, *given, **attributes)
        found = found | (exact != np.rint(exact))
    return found


def _overflow(implementation: Any, node: Any, inputs: Tuple[Any, ...], attributes: Any, result: Any) -> Any:
    """Mask of the elements where the operator in float64 leaves the range of the signed type."""
    if result.dtype.kind != "i" or any(np.asarray(array).dtype != result.dtype for array in inputs[:1]):
        return None
    wide = [
        array.astype(np.float64) if array is not None and position in _operands(node, inputs) else array
        for position, array in enumerate(inputs)
    ]
    [exact, *_] = implementation._run(node, *wide, **attributes)
    return _beyond(np.asarray(exact, np.float64), result.dtype)


def _operands(node: Any, inputs: Tuple[Any, ...]) -> range:
    """Positions of the inputs that are operands, not axes."""
    name = node.onnx_node.op_type
    return range(1 if name.startswith("Reduce") or name == "CumSum" else len(inputs))


def _is_float(array: Any) -> bool:
    # numpy extensions such as bfloat16 are of kind V
    return array.dtype.kind == "f" or (array.dtype.kind == "V" and "float" in array.dtype.name)


def _range(dtype: Any) -> Tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _beyond(exact: Any, dtype: Any) -> Any:
    """Mask of the float64 values that do not fit an integer type. Next to 2**63 float64 is not exact enough,
    and the value counts as not fitting.
    """
    least, most = _range(dtype)
    return ~((exact >= float(least)) & (exact < float(most + 1)))
