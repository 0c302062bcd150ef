"""Arithmetic on two tensors, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable

from fuzzing.graph.intervals import Interval, add, cut, modest, multiply, subtract, whole
from fuzzing.graph.operator import LEAD, Data, Operator
from fuzzing.graph.operators import register
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, NUMBERS, SIGNED, Dim, Shape, TensorType

#: How often the second input is of another shape. Seldom: then it is hardly ever an edge of the graph.
_BROADCAST = 0.1


def broadcast(*shapes: Shape) -> Shape:
    """The shape that tensors of these shapes have together (ONNX, "Broadcasting in ONNX").

    A length that only the data tell stays one, unless another tensor's is known and not 1.
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple([_together(dims) for dims in zip(*padded, strict=True)])


def _together(dims: tuple[Dim, ...]) -> Dim:
    known = [dim for dim in dims if dim not in (1, None)]
    return known[0] if known else None if None in dims else 1


def partner(site: Site) -> Shape:
    """A shape that goes with the lead input's: mostly the same, else some lengths 1, or fewer of them."""
    if not site.shape or not site.draws.chance(_BROADCAST):
        return site.shape
    kept = [1 if site.draws.chance(0.5) else dim for dim in site.shape]
    return tuple(kept[site.draws.below(site.rank) :])


def together(site: Site) -> tuple[TensorType, ...]:
    """The shape function: all inputs broadcast."""
    types = [type_ for type_ in site.types if type_ is not None]
    return (TensorType(types[0].dtype, broadcast(*(type_.shape or () for type_ in types))),)


def _binary(
    name: str,
    since: int,
    values: Callable[[Interval, Interval], Interval],
    torch: str,
    *,
    dtypes: tuple[str, ...] = NUMBERS,
    second: Callable[[Site], Interval] | None = None,
) -> Operator:
    return Operator(
        name,
        since,
        slots=(LEAD, Data(partner, within=second)),
        infer=together,
        values=lambda site: values(site.range(0), site.range(1)),
        dtypes=dtypes,
        torch=torch,
    )


def _divisor(site: Site) -> Interval:
    """Positive, and so far from zero that the quotient is at most twice the dividend."""
    return cut(Interval(0.5, whole(site.x).high), modest(site.x))


def _quotient(a: Interval, b: Interval) -> Interval:
    return multiply(a, Interval(1 / b.high, 1 / b.low))


register(
    _binary("Add", 13, add, "{0} + {1}"),
    _binary("Sub", 13, subtract, "{0} - {1}", dtypes=FLOATS + SIGNED),
    _binary("Mul", 13, multiply, "{0} * {1}"),
    # Integers divide towards zero, the same in torch only when it is told so.
    _binary("Div", 13, _quotient, "{0} / {1}", dtypes=FLOATS, second=_divisor),
)
