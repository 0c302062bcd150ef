"""Rules of ONNX about indices: what a node gathers, scatters, ranks or looks up."""

from __future__ import annotations

import numpy as np

from fuzzing.graph.axis_rules import axes_fit, axis_fits
from fuzzing.graph.operands import Array, Operands, Shape


def gather(given: Operands) -> bool:
    """Indices are within the axis."""
    return axis_fits(0)(given) and _indices_on_axis(given)


def _indices_on_axis(given: Operands) -> bool:
    shape = given.shape(0)
    return shape is None or _indices_fit(given.value(1), (shape[given.get("axis", 0)],))


def gather_elements(given: Operands) -> bool:
    """Indices have the rank of the data, are as long on other axes at most, and within the axis."""
    data, indices = given.shape(0), given.shape(1)
    if not gather(given) or data is None or indices is None:
        return data is None or gather(given)
    axis = given.get("axis", 0) % len(data)
    pairs = zip(indices, data, strict=False)
    return len(data) == len(indices) and all(
        one <= other for at, (one, other) in enumerate(pairs) if at != axis
    )


def scatter_elements(given: Operands) -> bool:
    """As for gathering, with an update for each index."""
    indices, updates = given.shape(1), given.shape(2)
    return gather_elements(given) and (indices is None or updates is None or indices == updates)


def gather_nd(given: Operands) -> bool:
    """Indices are within the axes after `batch_dims`."""
    data, indices, batch = given.shape(0), given.shape(1), given.get("batch_dims", 0)
    if data is None or indices is None:
        return True
    if not indices or batch >= min(len(data), len(indices)) or batch + indices[-1] > len(data):
        return False
    return data[:batch] == indices[:batch] and _indices_fit(given.value(1), data[batch : batch + indices[-1]])


def scatter_nd(given: Operands) -> bool:
    """Updates have the shape indices.shape[:-1] + data.shape[indices.shape[-1]:]."""
    data, indices, updates = given.shape(0), given.shape(1), given.shape(2)
    if data is None or indices is None:
        return True
    if not indices or not data or indices[-1] > len(data):
        return False
    fits = updates is None or updates == (*indices[:-1], *data[indices[-1] :])
    return fits and _indices_fit(given.value(1), data[: indices[-1]])


def _indices_fit(indices: Array | None, lengths: Shape) -> bool:
    """Whether index vectors are within these lengths."""
    if indices is None or not indices.size:
        return True
    bounds = np.array(lengths)
    return bool(((indices >= -bounds) & (indices < bounds)).all())


def roi_align(given: Operands) -> bool:
    """Each region has an image, and an area: without `sampling_ratio` an empty one averages no samples."""
    images, regions, places = given.shape(0), given.value(1), given.value(2)
    counts = {shape[:1] for at in (1, 2) if (shape := given.shape(at)) is not None}
    if len(counts) > 1:
        return False
    if images is not None and places is not None and not ((places >= 0) & (places < images[0])).all():
        return False
    if regions is None or regions.shape[1:] != (4,) or given.get("sampling_ratio", 0):
        return True
    return bool((regions[:, 2:] > regions[:, :2]).all())


def top_k(given: Operands) -> bool:
    """ "K: A 1-D tensor containing a single positive value", at most the length of the axis."""
    shape, count, axis = given.shape(0), given.value(1), given.get("axis", -1)
    if given.shape(1) not in (None, (1,)) or not axes_fit(shape, [axis]):
        return False
    return count is None or shape is None or bool(1 <= count[0] <= shape[axis])


def one_hot(given: Operands) -> bool:
    """There is at least one class, and two values."""
    depth = given.value(1)
    if given.shape(1) not in (None, (), (1,)) or given.shape(2) not in (None, (2,)):
        return False
    return depth is None or bool((depth >= 1).all())
