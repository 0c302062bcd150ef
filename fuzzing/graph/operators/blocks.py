"""Operators that move blocks of an image into its channels, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.draws import Draws
from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import whole
from fuzzing.graph.literals import spelled
from fuzzing.graph.operator import Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.site import Limits, Site
from fuzzing.graph.types import ANY, TensorType


def _deep(shape: tuple[int, ...]) -> bool:
    """Whether the channels form blocks larger than 1 by 1."""
    return shape[1] % 4 == 0 or shape[1] % 9 == 0


def _fresh_deep(draws: Draws, limits: Limits) -> tuple[int, ...]:
    batch, height, width = [draws.between(max(1, limits.min_dim), max(1, limits.max_dim)) for _ in range(3)]
    return (batch, draws.choice((4, 4, 8, 9)), height, width)


def _depth_block(site: Site) -> int:
    channels = site.dims(0)[1]
    sizes = [size for size in (2, 3, 4) if channels % (size * size) == 0]
    return site.draws.choice((*sizes, *sizes, *sizes, 1))


def _space_block(site: Site) -> int:
    """What height and width have in common, mostly all of it."""
    common = math.gcd(*site.dims(0)[2:])
    if site.draws.chance(0.7):
        return common
    return site.draws.choice([size for size in range(1, common + 1) if common % size == 0])


def _to_space(site: Site) -> tuple[TensorType, ...]:
    batch, channels, height, width = site.shape
    block = site.get("blocksize")
    return (TensorType(site.dtype, (
        batch,
        None if channels is None else channels // (block * block),
        None if height is None else height * block,
        None if width is None else width * block,
    )),)  # fmt: skip


def _to_depth(site: Site) -> tuple[TensorType, ...]:
    batch, channels, height, width = site.shape
    block = site.get("blocksize")
    return (TensorType(site.dtype, (
        batch,
        None if channels is None else channels * block * block,
        None if height is None else height // block,
        None if width is None else width // block,
    )),)  # fmt: skip


def _torch_to_space(site: Site, names: Sequence[str]) -> str:
    batch, channels, height, width = site.dims(0)
    block = site.get("blocksize")
    depth = channels // (block * block)
    if site.get("mode") == "CRD":
        split, order = [batch, depth, block, block, height, width], [0, 1, 4, 2, 5, 3]
    else:
        split, order = [batch, block, block, depth, height, width], [0, 3, 4, 1, 5, 2]
    return (
        f"{names[0]}.reshape({split}).permute({order})"
        f".reshape({[batch, depth, height * block, width * block]})"
    )


def _torch_to_depth(site: Site, names: Sequence[str]) -> str:
    batch, channels, height, width = site.dims(0)
    block = site.get("blocksize")
    split = [batch, channels, height // block, block, width // block, block]
    order = [0, 1, 3, 5, 2, 4] if site.get("mode") == "CRD" else [0, 3, 5, 1, 2, 4]
    shape = [batch, channels * block * block, height // block, width // block]
    return f"{names[0]}.reshape({split}).permute({order}).reshape({shape})"


_BLOCK_MODE = Setting("mode", Choice("DCR", "CRD"), omit=0.3, default="DCR")

register(
    Operator("DepthToSpace", 13, ranks=(4,), takes=_deep, fresh=_fresh_deep, infer=_to_space, within=whole,
             dtypes=ANY, settings=(Setting("blocksize", Made(_depth_block)), _BLOCK_MODE),
             torch=spelled(_torch_to_space)),
    Operator("SpaceToDepth", 13, ranks=(4,), infer=_to_depth, within=whole, dtypes=ANY,
             settings=(Setting("blocksize", Made(_space_block)),), torch=spelled(_torch_to_depth)),
    Operator("SpaceToDepth", 28, ranks=(4,), infer=_to_depth, within=whole, dtypes=ANY,
             settings=(Setting("blocksize", Made(_space_block)), _BLOCK_MODE),
             torch=spelled(_torch_to_depth)),
)  # fmt: skip
