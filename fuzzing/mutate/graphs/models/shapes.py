"""Shapes and ranks: all axes of one length get another, or data get a further axis or lose their first."""

from __future__ import annotations

import numpy as np

from fuzzing.cases import Tensor
from fuzzing.mutate.graphs.models.base import ModelMutant, register_mutation
from fuzzing.rng import Rng

#: The longest length that an axis gets.
_LONGEST = 9
_MAX_RANK = 6


@register_mutation("shapes")
def mutate_shapes(mutant: ModelMutant, rng: Rng) -> ModelMutant | None:
    """Gives every axis of one length another length: what had to agree still does.

    Data are cut, or repeated from their beginning. None for a model with tensors of whole numbers: they may
    be indices, which would point behind the end, or shapes.
    """
    tensors = _float_data(mutant)
    if any(edge not in tensors and _has_axes(mutant.data(edge)) for edge in mutant.data_edges()):
        return None
    lengths = sorted({length for tensor in tensors.values() for length in tensor.shape if length > 0})
    if not lengths:
        return None
    old = rng.choice(lengths)
    new = rng.between(1, _LONGEST)
    if new == old:
        return None
    return mutant.with_data(
        {edge: _resized(tensor, old, new) for edge, tensor in tensors.items() if old in tensor.shape}
    )


@register_mutation("ranks")
def mutate_ranks(mutant: ModelMutant, rng: Rng) -> ModelMutant | None:
    """Puts an axis of length 1 or 2 before those of some data, or takes away a first axis."""
    tensors = _float_data(mutant)
    chosen = [edge for edge in tensors if rng.chance(0.5)] or list(tensors)[:1]
    if not chosen:
        return None
    count = rng.between(0, 2)
    return mutant.with_data({edge: _reranked(tensors[edge], count) for edge in chosen})


def _has_axes(tensor: Tensor | None) -> bool:
    return tensor is not None and len(tensor.shape) > 0


def _float_data(mutant: ModelMutant) -> dict[int, Tensor]:
    """The data of floats: whole numbers mostly are axes, shapes and indices."""
    found = {edge: mutant.data(edge) for edge in mutant.data_edges()}
    return {
        edge: tensor
        for edge, tensor in found.items()
        if tensor is not None and tensor.dtype in ("float16", "float32", "float64")
    }


def _resized(tensor: Tensor, old: int, new: int) -> Tensor:
    array = tensor.array()
    for axis, length in enumerate(tensor.shape):
        if length == old:
            array = np.take(array, np.arange(new) % old, axis=axis)
    return Tensor.of(np.ascontiguousarray(array), tensor.dtype)


def _reranked(tensor: Tensor, count: int) -> Tensor:
    array = tensor.array()
    if not count:
        return Tensor.of(array[0], tensor.dtype) if array.ndim and len(array) else tensor
    if array.ndim >= _MAX_RANK:
        return tensor
    return Tensor.of(np.stack([array] * count), tensor.dtype)
