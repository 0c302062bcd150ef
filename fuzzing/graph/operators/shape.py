"""Operators about shapes, and those that make tensors of nothing but numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.domains import Made
from fuzzing.graph.intervals import Interval, whole
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import bounds, literal, numbers, scalar, spelled, whole_numbers
from fuzzing.graph.operator import Auxiliary, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.layout import product
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, TensorType

#: More than any length that only the data tell: such lengths never exceed a tensor's elements.
MOST = 1 << 40

# Shape, Size


def _shape_slice(site: Site) -> range:
    """The axes that Shape tells of: both ends count from the end if negative, and are clamped (Shape-15)."""
    start, end = site.get("start") or 0, site.get("end")
    return range(*slice(start, site.rank if end is None else end).indices(site.rank))


def _shape_plan(site: Site) -> None:
    """Draws axes from `start` to before `end`, at least one, each bound left out where it is the default."""
    draws, rank = site.draws, site.rank
    start = 0 if draws.chance(0.5) else draws.below(rank)
    end = rank if draws.chance(0.5) else draws.between(start + 1, rank)
    if start or draws.chance(0.2):
        site.attributes["start"] = start - rank if draws.chance(0.3) else start
    if end < rank:
        site.attributes["end"] = end - rank if draws.chance(0.3) else end
    elif draws.chance(0.2):
        site.attributes["end"] = rank + draws.below(3)


def _lengths(site: Site) -> Interval:
    dims = [site.shape[axis] for axis in _shape_slice(site)]
    known = [dim for dim in dims if dim is not None]
    return Interval(min(known), max(known)) if known and len(known) == len(dims) else Interval(0, MOST)


def _shape_bound(value: object, _site: Site) -> bool:
    return isinstance(value, int)


_BOUND = Made(lambda site: site.draws.between(-site.rank, site.rank), _shape_bound)


def _torch_shape(site: Site, names: Sequence[str]) -> str:
    axes = _shape_slice(site)
    return f"torch.tensor({names[0]}.shape[{axes.start}:{max(axes.start, axes.stop)}], dtype=torch.int64)"


def _elements(site: Site) -> Interval:
    total = product(site.shape)
    return Interval(0, MOST) if total is None else Interval(total, total)


# ConstantOfShape


def _a_shape(site: Site) -> Constant:
    draws, limits = site.draws, site.limits
    rank = draws.between(limits.min_rank, limits.max_rank)
    return int64(*[draws.between(limits.min_dim, limits.max_dim) for _ in range(rank)])


def _fill(site: Site) -> Constant:
    """A number of one of the types that nearly every model has: those of data are not known here."""
    dtype = site.draws.choice(("float32", "float32", "int64", "bool"))
    return literal(dtype, (site.draws.choice((0, 1)) if dtype == "bool" else site.draws.between(-2, 2),))


def _filled(site: Site) -> tuple[TensorType, ...]:
    value = site.get("value")
    dtype = "float32" if value is None else value.dtype
    lengths = whole_numbers(site, 0)
    if lengths is not None:
        return (TensorType(dtype, tuple(lengths)),)
    rank = (site.type(0).shape or (None,))[0]
    return (TensorType(dtype, None if rank is None else (None,) * rank),)


def _fill_bounds(site: Site) -> Interval:
    value = site.get("value")
    return Interval(0, 0) if value is None else bounds(value)


def _torch_filled(site: Site, _names: Sequence[str]) -> str:
    value = site.get("value")
    number = 0.0 if value is None else numbers(value).item()
    dtype = "float32" if value is None else value.dtype
    return f"torch.full({site.numbers(0)}, {number!r}, dtype=torch.{dtype})"


# Range


def _range_plan(site: Site) -> tuple[str, float, float, float]:
    """Start, limit and step, all exact in binary, so that nobody's rounding changes the length."""
    draws, limits = site.draws, site.limits
    dtype = draws.choice(("float32", "int64"))
    count = draws.between(limits.min_dim, limits.max_dim)
    step = draws.choice((1, 1, 2, -1, -3) if dtype == "int64" else (1.0, 0.5, 0.25, -0.5, -2.0))
    start = draws.between(-3, 3)
    rest = step * draws.choice((0, 0.5)) if dtype == "float32" and count else 0
    return dtype, start, start + step * count - rest, step


def _range_numbers(site: Site) -> tuple[float, float, float] | None:
    if any(site.constants[position] is None for position in range(3)):
        return None
    start, limit, step = [numbers(constant).item() for constant in site.constants if constant is not None]
    return start, limit, step


def _ranged(site: Site) -> tuple[TensorType, ...]:
    found = _range_numbers(site)
    dtype = site.type(0).dtype
    if found is None:
        return (TensorType(dtype, (None,)),)
    start, limit, step = found
    return (TensorType(dtype, (max(0, math.ceil((limit - start) / step)),)),)


def _range_bounds(site: Site) -> Interval:
    found = _range_numbers(site)
    assert found is not None
    start, _, step = found
    (length,) = _ranged(site)[0].lengths
    last = start + step * max(0, length - 1)
    return Interval(min(start, last), max(start, last))


def _torch_range(site: Site, _names: Sequence[str]) -> str:
    return f"torch.arange(*{_range_numbers(site)}, dtype=torch.{site.type(0).dtype})"


# Constant


def _literal_plan(site: Site) -> None:
    """Exactly one of the attributes that hold numbers."""
    name = site.draws.choice(("value", "value", *_KINDS))
    site.attributes[name] = _KINDS[name][0](site)


def _tensor(site: Site) -> Constant:
    draws, limits = site.draws, site.limits
    rank = draws.between(limits.min_rank, limits.max_rank)
    shape: list[int] = []
    for _ in range(rank):
        shape.append(draws.between(1, max(1, min(limits.max_dim, 24 // math.prod(shape)))))
    dtype = draws.choice(("float32", "float32", "int64"))
    unit = 1 if dtype == "int64" else 4
    return literal(dtype, [draws.between(-8, 8) / unit for _ in range(math.prod(shape))], tuple(shape))


def _content(site: Site) -> Constant:
    """What the node gives, as a tensor."""
    for name, value in site.attributes.items():
        if name == "value" and isinstance(value, Constant):
            return value
        if name == "value_int" and isinstance(value, int):
            return scalar("int64", value)
        if name == "value_float" and isinstance(value, float):
            return scalar("float32", value)
        if name in ("value_ints", "value_floats") and isinstance(value, tuple):
            return literal("int64" if name == "value_ints" else "float32", value)  # type: ignore[arg-type]
    raise LookupError(f"a Constant holds numbers in none of its attributes: {', '.join(site.attributes)}")


def _torch_constant(site: Site, _names: Sequence[str]) -> str:
    content = _content(site)
    return f"torch.tensor({numbers(content).tolist()!r}, dtype=torch.{content.dtype})"


def _count(site: Site) -> range:
    return range(site.draws.between(1, max(1, site.limits.max_dim)))


#: The attributes that may hold the numbers, how they are drawn, and what they are.
_KINDS: dict[str, tuple[Callable[[Site], Attribute], type]] = {
    "value": (_tensor, Constant),
    "value_float": (lambda site: site.draws.between(-8, 8) / 4, float),
    "value_floats": (lambda site: tuple([site.draws.between(-8, 8) / 4 for _ in _count(site)]), tuple),
    "value_int": (lambda site: site.draws.between(-8, 8), int),
    "value_ints": (lambda site: tuple([site.draws.between(-8, 8) for _ in _count(site)]), tuple),
}


def _kind(name: str) -> Setting:
    make, held = _KINDS[name]
    return planned(name, domain=Made(make, lambda value, site: isinstance(value, held)))


def _literal_type(site: Site) -> tuple[TensorType, ...]:
    """Of text, which is never drawn but may be read, there is a type and no value."""
    for name, value in site.attributes.items():
        if name in ("value_string", "value_strings"):
            return (TensorType("string", (len(value),) if isinstance(value, tuple) else ()),)
    return (_content(site).type,)


register(
    Operator("Shape", 13, ranks=tuple(range(1, 9)), values=_lengths, within=whole, dtypes=ANY,
             infer=lambda site: (TensorType("int64", (site.rank,)),), empty=True, dynamic=True,
             torch=_torch_shape),
    Operator("Shape", 15, ranks=tuple(range(1, 9)), values=_lengths, within=whole, dtypes=ANY,
             infer=lambda site: (TensorType("int64", (len(_shape_slice(site)),)),), empty=True, dynamic=True,
             plan=_shape_plan,
             settings=(planned("start", 0, _BOUND), planned("end", domain=_BOUND)),
             torch=_torch_shape),
    Operator("Size", 13, values=_elements, within=whole, dtypes=ANY, empty=True, dynamic=True,
             infer=lambda site: (TensorType("int64", ()),),
             torch=lambda site, names: f"torch.tensor({names[0]}.numel(), dtype=torch.int64)"),
    Operator("ConstantOfShape", 9, slots=(Auxiliary(_a_shape),), lead=-1, infer=_filled, values=_fill_bounds,
             settings=(Setting("value", Made(_fill), omit=0.2),), torch=spelled(_torch_filled)),
    Operator("Range", 11, lead=-1, plan=_range_plan, infer=_ranged, values=_range_bounds,
             slots=(Auxiliary(lambda site: scalar(site.plan[0], site.plan[1])),
                    Auxiliary(lambda site: scalar(site.plan[0], site.plan[2])),
                    Auxiliary(lambda site: scalar(site.plan[0], site.plan[3]))), torch=spelled(_torch_range)),
    Operator("Constant", 13, slots=(), degrees=(0,), lead=-1, plan=_literal_plan,
             infer=_literal_type, values=lambda site: bounds(_content(site)),
             settings=tuple(_kind(name) for name in _KINDS), torch=_torch_constant),
)  # fmt: skip
