"""Products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.draws import Draws
from fuzzing.graph.domains import Made
from fuzzing.graph.intervals import MODEST, Interval, add, cut, scale, widen
from fuzzing.graph.operator import LEAD, Data, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast
from fuzzing.graph.operators.sums import addend, factor, multiplied, room, total
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Limits, Site
from fuzzing.graph.types import FLOATS, Dim, Shape, TensorType

#: What Gemm and MatMul multiply, by the ONNX operator reference.
_NUMBERS = (*FLOATS, "int32", "int64", "uint32", "uint64")


def columns(site: Site, rows: int, inner: int, batch: int = 1) -> Dim:
    """How many columns a second matrix has: any number, if the product is then no larger than that matrix."""
    if rows <= inner:
        return None
    most = room(site) // max(1, batch * rows)
    return site.draws.between(1, max(1, min(site.limits.max_dim, most)))


# --- Gemm -------------------------------------------------------------------------------------------------


def _transposed(site: Site) -> None:
    for name in ("transA", "transB"):
        if site.draws.chance(0.5):
            site.attributes[name] = site.draws.below(2)


def _rows(site: Site) -> tuple[int, int]:
    """The rows and columns of the first matrix as it is multiplied."""
    rows, inner = site.dims(0)
    return (inner, rows) if site.get("transA") else (rows, inner)


def _gemm_shape(site: Site) -> tuple[int, int]:
    second = site.dims(1)
    return _rows(site)[0], second[0 if site.get("transB") else 1]


def _gemm_second(site: Site) -> Shape:
    rows, inner = _rows(site)
    count = columns(site, rows, inner)
    return (count, inner) if site.get("transB") else (inner, count)


def _gemm_third(site: Site) -> Shape:
    """A shape that broadcasts to the product's."""
    rows, count = _gemm_shape(site)
    return site.draws.choice(((rows, count), (rows, count), (count,), (1, count), (rows, 1), (1,), ()))


def _factor_of_one(site: Site) -> float:
    """A half of integers is none."""
    return site.draws.choice((0.5, 0.25, 1.0, -1.0)) if site.dtype in FLOATS else 1.0


def _gemm_values(site: Site) -> Interval:
    product = total(site.dtype, _rows(site)[1], site.range(0), site.range(1))
    product = scale(product, site.get("alpha"))
    return add(product, scale(site.range(2), site.get("beta"))) if site.given(2) else product


def _torch_gemm(site: Site, names: Sequence[str]) -> str:
    one = f"{names[0]}.mT" if site.get("transA") else names[0]
    other = f"{names[1]}.mT" if site.get("transB") else names[1]
    text = f"({one} @ {other})" if site.get("alpha") == 1 else f"{site.get('alpha')!r} * ({one} @ {other})"
    if not site.given(2):
        return text
    return f"{text} + {names[2]}" if site.get("beta") == 1 else f"{text} + {site.get('beta')!r} * {names[2]}"


# --- MatMul -----------------------------------------------------------------------------------------------


def second(site: Site, vectors: bool = True) -> Shape:
    """What can be multiplied with the lead input: mostly with its batch, else with one that broadcasts."""
    draws, shape = site.draws, site.dims(0)
    inner, rows, batch = shape[-1], shape[-2] if len(shape) > 1 else 1, shape[:-2]
    if vectors and draws.chance(0.1):
        return (inner,)
    if batch and draws.chance(0.1):
        batch = tuple([1 if draws.chance(0.5) else dim for dim in batch])[draws.below(len(batch) + 1) :]
    elif batch and 1 in batch and draws.chance(0.2):
        most = min(site.limits.max_dim, room(site) // site.x.elements)
        batch = tuple([draws.between(1, max(1, most)) if dim == 1 else dim for dim in batch[-1:]])
    count = columns(site, rows, inner, math.prod(shape[:-2]) * math.prod(batch))
    return (*batch, inner, count)


def product(first: Sequence[int], other: Sequence[int]) -> Shape:
    """The shape function of MatMul, which is numpy's."""
    batch = broadcast(tuple(first[:-2]), tuple(other[:-2])) if len(first) > 2 or len(other) > 2 else ()
    return (*batch, *first[-2:-1], *(other[-1:] if len(other) > 1 else ()))


def _matmul(site: Site) -> tuple[TensorType, ...]:
    return (TensorType(site.dtype, product(site.dims(0), site.dims(1))),)


# --- Det --------------------------------------------------------------------------------------------------


def _square(draws: Draws, limits: Limits) -> tuple[int, ...]:
    rank = draws.between(2, max(2, min(4, limits.max_rank)))
    side = draws.between(1, min(4, max(1, limits.max_dim)))
    return (*[draws.between(1, max(1, limits.max_dim)) for _ in range(rank - 2)], side, side)


def _determinant(site: Site) -> Interval:
    """Hadamard's bound."""
    side = site.dims(0)[-1]
    most = (site.range(0).largest * math.sqrt(side)) ** side
    return widen(Interval(-most, most), 1e-2)


def _det(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "Det", since, dtypes=dtypes, ranks=tuple(range(2, 9)), fresh=_square,
        takes=lambda shape: shape[-1] == shape[-2] <= 4,
        within=lambda type_: cut(Interval(-4, 4), MODEST[type_.dtype]),
        infer=lambda site: (TensorType(site.dtype, site.shape[:-2]),),
        values=_determinant, torch="torch.linalg.det({0})",
    )  # fmt: skip


register(
    Operator("Gemm", 13, dtypes=_NUMBERS, ranks=(2,), degrees=(2, 3), plan=_transposed, within=multiplied,
             slots=(LEAD, Data(_gemm_second, within=lambda site: factor(site, _rows(site)[1])),
                    Data(_gemm_third, within=addend)),
             settings=(planned("transA", 0), planned("transB", 0),
                       Setting("alpha", Made(_factor_of_one), omit=0.5, default=1.0),
                       Setting("beta", Made(_factor_of_one), omit=0.5, default=1.0)),
             infer=lambda site: (TensorType(site.dtype, _gemm_shape(site)),),
             values=_gemm_values, torch=_torch_gemm),
    Operator("MatMul", 13, dtypes=_NUMBERS, ranks=tuple(range(1, 9)), within=multiplied,
             slots=(LEAD, Data(second, within=lambda site: factor(site, site.dims(0)[-1]))),
             infer=_matmul, torch="{0} @ {1}",
             values=lambda site: total(site.dtype, site.dims(0)[-1], site.range(0), site.range(1))),
    _det(11, NARROW),
    _det(22, FLOATS),
)  # fmt: skip
