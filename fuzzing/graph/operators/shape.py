"""Shape, Size, ConstantOfShape, Range and Constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import Computed, planned_attribute
from fuzzing.graph.constants import (
    bounds,
    known_integers,
    make_constant,
    make_scalar,
    numbers,
    requires_static_inputs,
)
from fuzzing.graph.intervals import Interval, full_range
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.operator_spec import AttributeSpec, ConstantInput, NodeContext, OperatorSpec, int64
from fuzzing.graph.operators import register
from fuzzing.graph.operators.layout import product
from fuzzing.graph.types import ANY, TensorType

#: More than any length that depends on the data: such lengths never exceed a tensor's elements.
MOST = 1 << 40


# Shape, Size
def _shape_slice(context: NodeContext) -> range:
    """The axes that Shape returns: both ends count from the end if negative, and are clamped (Shape-15)."""
    start, end = context.get("start") or 0, context.get("end")
    return range(*slice(start, context.rank if end is None else end).indices(context.rank))


def _shape_plan(context: NodeContext) -> None:
    """Draws axes [start, end), at least one; each bound is sometimes omitted if it is the default."""
    rng, rank = context.rng, context.rank
    start = 0 if rng.chance(0.5) else rng.below(rank)
    end = rank if rng.chance(0.5) else rng.between(start + 1, rank)
    if start or rng.chance(0.2):
        context.attributes["start"] = start - rank if rng.chance(0.3) else start
    if end < rank:
        context.attributes["end"] = end - rank if rng.chance(0.3) else end
    elif rng.chance(0.2):
        context.attributes["end"] = rank + rng.below(3)


def _lengths(context: NodeContext) -> Interval:
    dims = [context.shape[axis] for axis in _shape_slice(context)]
    known = [dim for dim in dims if dim is not None]
    return Interval(min(known), max(known)) if known and len(known) == len(dims) else Interval(0, MOST)


_BOUND = Computed(
    lambda context: context.rng.between(-context.rank, context.rank),
    lambda value, _context: isinstance(value, int),
)


def _torch_shape(context: NodeContext, names: Sequence[str]) -> str:
    axes = _shape_slice(context)
    return f"torch.tensor({names[0]}.shape[{axes.start}:{max(axes.start, axes.stop)}], dtype=torch.int64)"


def _elements(context: NodeContext) -> Interval:
    total = product(context.shape)
    return Interval(0, MOST) if total is None else Interval(total, total)


# ConstantOfShape
def _a_shape(context: NodeContext) -> Constant:
    rng, limits = context.rng, context.limits
    rank = rng.between(limits.min_rank, limits.max_rank)
    return int64(*[rng.between(limits.min_dim, limits.max_dim) for _ in range(rank)])


def _fill(context: NodeContext) -> Constant:
    """A number of one of the types in nearly every model; those of data are unknown here."""
    dtype = context.rng.choice(("float32", "float32", "int64", "bool"))
    return make_constant(
        dtype, (context.rng.choice((0, 1)) if dtype == "bool" else context.rng.between(-2, 2),)
    )


def _filled(context: NodeContext) -> tuple[TensorType, ...]:
    value = context.get("value")
    dtype = "float32" if value is None else value.dtype
    lengths = known_integers(context, 0)
    if lengths is not None:
        return (TensorType(dtype, tuple(lengths)),)
    rank = (context.type(0).shape or (None,))[0]
    return (TensorType(dtype, None if rank is None else (None,) * rank),)


def _fill_bounds(context: NodeContext) -> Interval:
    value = context.get("value")
    return Interval(0, 0) if value is None else bounds(value)


def _torch_filled(context: NodeContext, _names: Sequence[str]) -> str:
    value = context.get("value")
    number = 0.0 if value is None else numbers(value).item()
    dtype = "float32" if value is None else value.dtype
    return f"torch.full({context.numbers(0)}, {number!r}, dtype=torch.{dtype})"


# Range
def _range_plan(context: NodeContext) -> tuple[str, float, float, float]:
    """Start, limit and step, all exact in binary, so that rounding cannot change the length."""
    rng, limits = context.rng, context.limits
    dtype = rng.choice(("float32", "int64"))
    count = rng.between(limits.min_dim, limits.max_dim)
    step = rng.choice((1, 1, 2, -1, -3) if dtype == "int64" else (1.0, 0.5, 0.25, -0.5, -2.0))
    start = rng.between(-3, 3)
    rest = step * rng.choice((0, 0.5)) if dtype == "float32" and count else 0
    return dtype, start, start + step * count - rest, step


def _range_numbers(context: NodeContext) -> tuple[float, float, float] | None:
    if any(context.constants[position] is None for position in range(3)):
        return None
    start, limit, step = [numbers(constant).item() for constant in context.constants if constant is not None]
    return start, limit, step


def _ranged(context: NodeContext) -> tuple[TensorType, ...]:
    found = _range_numbers(context)
    dtype = context.type(0).dtype
    if found is None:
        return (TensorType(dtype, (None,)),)
    start, limit, step = found
    return (TensorType(dtype, (max(0, math.ceil((limit - start) / step)),)),)


def _range_bounds(context: NodeContext) -> Interval:
    found = _range_numbers(context)
    assert found is not None
    start, _, step = found
    (length,) = _ranged(context)[0].lengths
    last = start + step * max(0, length - 1)
    return Interval(min(start, last), max(start, last))


def _torch_range(context: NodeContext, _names: Sequence[str]) -> str:
    return f"torch.arange(*{_range_numbers(context)}, dtype=torch.{context.type(0).dtype})"


# Constant
def _literal_plan(context: NodeContext) -> None:
    name = context.rng.choice(("value", "value", *_KINDS))
    context.attributes[name] = _KINDS[name][0](context)


def _tensor(context: NodeContext) -> Constant:
    rng, limits = context.rng, context.limits
    rank = rng.between(limits.min_rank, limits.max_rank)
    shape: list[int] = []
    for _ in range(rank):
        shape.append(rng.between(1, max(1, min(limits.max_dim, 24 // math.prod(shape)))))
    dtype = rng.choice(("float32", "float32", "int64"))
    unit = 1 if dtype == "int64" else 4
    return make_constant(dtype, [rng.between(-8, 8) / unit for _ in range(math.prod(shape))], tuple(shape))


def _content(context: NodeContext) -> Constant:
    for name, value in context.attributes.items():
        if name == "value" and isinstance(value, Constant):
            return value
        if name == "value_int" and isinstance(value, int):
            return make_scalar("int64", value)
        if name == "value_float" and isinstance(value, float):
            return make_scalar("float32", value)
        if name in ("value_ints", "value_floats") and isinstance(value, tuple):
            return make_constant("int64" if name == "value_ints" else "float32", value)  # type: ignore[arg-type]
    raise LookupError(f"a Constant holds numbers in none of its attributes: {', '.join(context.attributes)}")


def _torch_constant(context: NodeContext, _names: Sequence[str]) -> str:
    content = _content(context)
    return f"torch.tensor({numbers(content).tolist()!r}, dtype=torch.{content.dtype})"


def _count(context: NodeContext) -> range:
    return range(context.rng.between(1, max(1, context.limits.max_dim)))


#: The attributes that may hold the numbers, how they are drawn, and what they are.
_KINDS: dict[str, tuple[Callable[[NodeContext], Attribute], type]] = {
    "value": (_tensor, Constant),
    "value_float": (lambda context: context.rng.between(-8, 8) / 4, float),
    "value_floats": (lambda context: tuple([context.rng.between(-8, 8) / 4 for _ in _count(context)]), tuple),
    "value_int": (lambda context: context.rng.between(-8, 8), int),
    "value_ints": (lambda context: tuple([context.rng.between(-8, 8) for _ in _count(context)]), tuple),
}


def _kind(name: str) -> AttributeSpec:
    make, held = _KINDS[name]
    return planned_attribute(name, domain=Computed(make, lambda value, context: isinstance(value, held)))


def _literal_type(context: NodeContext) -> tuple[TensorType, ...]:
    for name, value in context.attributes.items():
        if name in ("value_string", "value_strings"):
            return (TensorType("string", (len(value),) if isinstance(value, tuple) else ()),)
    return (_content(context).type,)


register(
    OperatorSpec("Shape", 13, ranks=tuple(range(1, 9)), values=_lengths, within=full_range, dtypes=ANY,
             infer=lambda context: (TensorType("int64", (context.rank,)),), empty=True, dynamic=True,
             torch=_torch_shape),
    OperatorSpec("Shape", 15, ranks=tuple(range(1, 9)), values=_lengths, within=full_range, dtypes=ANY,
                 infer=lambda context: (TensorType("int64", (len(_shape_slice(context)),)),), empty=True,
                 dynamic=True, plan=_shape_plan,
                 attribute_specs=(planned_attribute("start", 0, _BOUND),
                                  planned_attribute("end", domain=_BOUND)), torch=_torch_shape),
    OperatorSpec("Size", 13, values=_elements, within=full_range, dtypes=ANY, empty=True, dynamic=True,
             infer=lambda context: (TensorType("int64", ()),),
             torch=lambda context, names: f"torch.tensor({names[0]}.numel(), dtype=torch.int64)"),
    OperatorSpec("ConstantOfShape", 9, input_specs=(ConstantInput(_a_shape),), primary=-1, infer=_filled,
                 values=_fill_bounds, attribute_specs=(AttributeSpec("value", Computed(_fill), omit=0.2),),
                 torch=requires_static_inputs(_torch_filled)),
    OperatorSpec("Range", 11, primary=-1, plan=_range_plan, infer=_ranged, values=_range_bounds,
                 input_specs=(ConstantInput(lambda context: make_scalar(context.plan[0], context.plan[1])),
                              ConstantInput(lambda context: make_scalar(context.plan[0], context.plan[2])),
                              ConstantInput(lambda context: make_scalar(context.plan[0], context.plan[3]))),
                 torch=requires_static_inputs(_torch_range)),
    OperatorSpec("Constant", 13, input_specs=(), degrees=(0,), primary=-1, plan=_literal_plan,
             infer=_literal_type, values=lambda context: bounds(_content(context)),
             attribute_specs=tuple(_kind(name) for name in _KINDS), torch=_torch_constant),
)  # fmt: skip
