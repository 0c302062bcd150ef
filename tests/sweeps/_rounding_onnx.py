"""ONNX's evaluator whose inexact numbers are off by one rounding more, up or down: a compiler that is right.

As `_rounding_torch`, for models.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fuzzing.backends.base import register
from fuzzing.backends.onnx_reference import OnnxReference


@register
class RoundingOnnx(OnnxReference):
    """See the head of this file."""

    name: ClassVar[str] = "rounding_onnx"
    reference: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = ("OnnxModel",)

    def compile(self, model: Any) -> Any:
        evaluator = super().compile(model)
        _wrap(self._onnx.reference.ReferenceEvaluator, evaluator, set())
        return evaluator


def _wrap(kind: Any, evaluator: Any, seen: set[int]) -> None:
    """Moves the results of an evaluator's nodes, those of functions and branches included."""
    if id(evaluator) in seen:
        return
    seen.add(id(evaluator))
    for number, node in enumerate(evaluator.rt_nodes_):
        for held in vars(node).values():
            if isinstance(held, kind):
                _wrap(kind, held, seen)
        # The nodes of a function round themselves; CastLike takes its type from an operand, which is widened.
        if not hasattr(node, "impl_") and node.onnx_node.op_type != "CastLike":
            node.run = _rounding(node.run, number)


def _rounding(run: Any, number: int) -> Any:
    generator = np.random.Generator(np.random.PCG64(number))

    def moved(value: Any, exact: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind != "f":
            return value
        towards = np.where(generator.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
        fixed = ~np.isfinite(value) | (value == 0) | (value == exact)
        return np.where(fixed, value, np.nextafter(value, towards))

    def rounding(*args: Any, **kwargs: Any) -> Any:
        made = run(*args, **kwargs)
        try:
            wide = [one.astype(np.float64) if _is_float(one) else one for one in args]
            exact = run(*wide, **kwargs)
        except Exception:  # noqa: BLE001 - whatever an operator says to another type
            return made
        return tuple(map(moved, made, exact))

    return rounding


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"
