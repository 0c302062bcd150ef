"""DepthToSpace and SpaceToDepth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Choice, Computed
from fuzzing.graph.constants import requires_static_inputs
from fuzzing.graph.intervals import full_range
from fuzzing.graph.operator_spec import AttributeSpec, GraphLimits, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.types import ANY, TensorType
from fuzzing.rng import Rng


def _deep(shape: tuple[int, ...]) -> bool:
    return shape[1] % 4 == 0 or shape[1] % 9 == 0


def _fresh_deep(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    batch, height, width = [rng.between(max(1, limits.min_dim), max(1, limits.max_dim)) for _ in range(3)]
    return (batch, rng.choice((4, 4, 8, 9)), height, width)


def _depth_block(context: NodeContext) -> int:
    channels = context.dims(0)[1]
    sizes = [size for size in (2, 3, 4) if channels % (size * size) == 0]
    return context.rng.choice((*sizes, *sizes, *sizes, 1))


def _space_block(context: NodeContext) -> int:
    common = math.gcd(*context.dims(0)[2:])
    if context.rng.chance(0.7):
        return common
    return context.rng.choice([size for size in range(1, common + 1) if common % size == 0])


def _to_space(context: NodeContext) -> tuple[TensorType, ...]:
    batch, channels, height, width = context.shape
    block = context.get("blocksize")
    return (TensorType(context.dtype, (
        batch,
        None if channels is None else channels // (block * block),
        None if height is None else height * block,
        None if width is None else width * block,
    )),)  # fmt: skip


def _to_depth(context: NodeContext) -> tuple[TensorType, ...]:
    batch, channels, height, width = context.shape
    block = context.get("blocksize")
    return (TensorType(context.dtype, (
        batch,
        None if channels is None else channels * block * block,
        None if height is None else height // block,
        None if width is None else width // block,
    )),)  # fmt: skip


def _torch_to_space(context: NodeContext, names: Sequence[str]) -> str:
    batch, channels, height, width = context.dims(0)
    block = context.get("blocksize")
    depth = channels // (block * block)
    if context.get("mode") == "CRD":
        split, order = [batch, depth, block, block, height, width], [0, 1, 4, 2, 5, 3]
    else:
        split, order = [batch, block, block, depth, height, width], [0, 3, 4, 1, 5, 2]
    return (
        f"{names[0]}.reshape({split}).permute({order})"
        f".reshape({[batch, depth, height * block, width * block]})"
    )


def _torch_to_depth(context: NodeContext, names: Sequence[str]) -> str:
    batch, channels, height, width = context.dims(0)
    block = context.get("blocksize")
    split = [batch, channels, height // block, block, width // block, block]
    order = [0, 1, 3, 5, 2, 4] if context.get("mode") == "CRD" else [0, 3, 5, 1, 2, 4]
    shape = [batch, channels * block * block, height // block, width // block]
    return f"{names[0]}.reshape({split}).permute({order}).reshape({shape})"


_BLOCK_MODE = AttributeSpec("mode", Choice("DCR", "CRD"), omit=0.3, default="DCR")

register(
    OperatorSpec("DepthToSpace", 13, ranks=(4,), takes=_deep, draw_shape=_fresh_deep, infer=_to_space,
                 within=full_range, dtypes=ANY,
                 attribute_specs=(AttributeSpec("blocksize", Computed(_depth_block)), _BLOCK_MODE),
                 torch=requires_static_inputs(_torch_to_space)),
    OperatorSpec("SpaceToDepth", 13, ranks=(4,), infer=_to_depth, within=full_range, dtypes=ANY,
                 attribute_specs=(AttributeSpec("blocksize", Computed(_space_block)),),
                 torch=requires_static_inputs(_torch_to_depth)),
    OperatorSpec("SpaceToDepth", 28, ranks=(4,), infer=_to_depth, within=full_range, dtypes=ANY,
             attribute_specs=(AttributeSpec("blocksize", Computed(_space_block)), _BLOCK_MODE),
             torch=requires_static_inputs(_torch_to_depth)),
)  # fmt: skip
