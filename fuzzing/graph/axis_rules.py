"""Rules of ONNX about the axes that a node names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzzing.graph.operands import Operands, Shape


def vectors(*places: int) -> Callable[[Operands], bool]:
    """These inputs are vectors."""
    return lambda given: all(len(shape) == 1 for at in places if (shape := given.shape(at)) is not None)


def scalars(*places: int) -> Callable[[Operands], bool]:
    """These inputs are scalars."""
    return lambda given: all(given.shape(at) in (None, ()) for at in places)


def axis_fits(default: int) -> Callable[[Operands], bool]:
    """The attribute `axis` is within the rank of the first input."""
    return lambda given: axes_fit(given.shape(0), [given.get("axis", default)])


def axes_fit(shape: Shape | None, axes: Any) -> bool:
    """Whether axes are within the rank, each once; true if one of both is unknown."""
    if shape is None or axes is None:
        return True
    places = [int(axis) for axis in np.asarray(axes).reshape(-1)]
    if any(not -len(shape) <= axis < len(shape) for axis in places):
        return False
    return len({axis % len(shape) for axis in places}) == len(places)


def reduction(given: Operands) -> bool:
    """Axes are a vector, within the rank, each once."""
    axes = given.get("axes")
    return vectors(1)(given) and axes_fit(given.shape(0), given.value(1) if axes is None else axes)


def accumulation(given: Operands) -> bool:
    """The axis, an input, is within the rank."""
    shape, axis = given.shape(0), given.value(1)
    return shape != () and axes_fit(shape, axis)


def unsqueeze(given: Operands) -> bool:
    """Axes are a vector, within the rank of the result, each once."""
    shape, axes = given.shape(0), given.value(1)
    if not vectors(1)(given) or shape is None or axes is None:
        return vectors(1)(given)
    return axes_fit((*shape, *(1 for _ in axes)), axes)


def slices(given: Operands) -> bool:
    """Starts, ends, axes and steps are vectors of one length, axes are each once, steps are not 0.

    Without axes "they are set to `[0, ..., r-1]`": there is a start for each of them. onnxruntime and ONNX's
    evaluator take fewer, for the first axes.
    """
    shape, starts, steps = given.shape(0), given.get("starts"), given.value(4)
    lengths = {one for at in range(1, 5) if (one := given.shape(at)) is not None}
    if starts is not None:  # before opset 10
        lengths.add((len(starts),))
    if len(lengths) > 1 or not vectors(1, 2, 3, 4)(given) or (steps is not None and not steps.all()):
        return False
    of_all = given.dtype(3) == "" and given.get("axes") is None
    if of_all and shape is not None and lengths and lengths != {(len(shape),)}:
        return False
    return axes_fit(shape, given.value(3))


def transpose(given: Operands) -> bool:
    """The attribute `perm` has each axis once; a shape that is open has axes."""
    shape, perm = given.shape(0), given.get("perm")
    if shape is None and perm is not None and len(perm) == 0:
        return False
    return shape is None or perm is None or sorted(perm) == list(range(len(shape)))


def center_crop_pad(given: Operands) -> bool:
    """A length for each of the axes, each within the rank and once."""
    shape, axes, lengths = given.shape(0), given.get("axes"), given.shape(1)
    count = len(axes) if axes is not None else None if shape is None else len(shape)
    return axes_fit(shape, axes) and (lengths is None or count is None or lengths == (count,))


def pad(given: Operands) -> bool:
    """Pads are a vector, what fills them one number, and a reflection is no longer than what it reflects."""
    shape, pads, axes = given.shape(0), given.value(1), given.value(3)
    # "A scalar value"; the functions of ONNX's own Attention have lists of one.
    if not vectors(1, 3)(given) or given.shape(2) not in (None, (), (1,)):
        return False
    mirrored = given.get("mode") in (b"reflect", "reflect")
    if not mirrored or shape is None or pads is None or (axes is None and given.shape(3) is not None):
        return True
    places = range(len(shape)) if axes is None else [int(axis) for axis in axes]
    return all(
        max(begin, end) < max(1, shape[axis] + min(begin, 0) + min(end, 0))
        for axis, begin, end in zip(places, pads, pads[len(pads) // 2 :], strict=False)
    )
