"""Operators that lay a pattern over a tensor: triangles, diagonals, one-hot codes, reversed beginnings."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.domains import Between, Choice, Made
from fuzzing.graph.intervals import UNIT, Interval, hull, whole
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import bounds, literal, numbers, scalar, spelled, whole_numbers
from fuzzing.graph.onnx_writer import DTYPES
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.operators.joining import growth, repeated
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, NUMBERS, TensorType

_MATRICES = tuple(range(2, 9))
#: The element types of operators that ONNX opened to bfloat16 late.
_BUT_BFLOAT16 = tuple(dtype for dtype in ANY if dtype != "bfloat16")
_NUMBERS_BUT_BFLOAT16 = tuple(dtype for dtype in NUMBERS if dtype != "bfloat16")

# Trilu


def _diagonal(site: Site) -> Constant:
    rows, columns = site.dims(0)[-2:]
    return scalar("int64", site.draws.between(-rows, columns))


def with_zero(site: Site) -> Interval:
    """Bounds on the lead input's elements and on zeros among them."""
    return hull((site.range(0), Interval(0, 0)))


def _torch_trilu(site: Site, names: Sequence[str]) -> str:
    function = "triu" if site.get("upper") else "tril"
    return f"torch.{function}({names[0]}, {site.numbers(1)[0] if site.given(1) else 0})"


# EyeLike


def _eye_dtype(site: Site) -> int:
    """Any of a model's usual types; those of data are the lead's."""
    return DTYPES[site.draws.choice((site.dtype, "float32", "int64"))]


_NAMES = {number: name for name, number in DTYPES.items()}


def _eye(site: Site) -> tuple[TensorType, ...]:
    dtype = site.get("dtype")
    return (TensorType(site.dtype if dtype is None else _NAMES[dtype], site.x.shape),)


def _off_diagonal(site: Site) -> int:
    rows, columns = site.dims(0)
    return site.draws.between(1 - rows, columns - 1)


def _whole_number(value: Attribute, _site: Site) -> bool:
    return isinstance(value, int)


def _torch_eye(site: Site, _names: Sequence[str]) -> str:
    """The column less the row is k."""
    rows, columns = site.dims(0)
    return (
        f"(torch.arange({columns}) - torch.arange({rows}).reshape({rows}, 1) == {site.get('k')})"
        f".to(torch.{_eye(site)[0].dtype})"
    )


# OneHot


#: Which types of the number of classes and of the values onnxruntime 1.31 knows, by the indices' type; other
#: frontends know fewer.
_HOT_TYPES = {
    "float32": (("float32", "float32"), ("int64", "int64")),
    "int64": (("int64", "int64"), ("int64", "float32"), ("float32", "int32")),
    "int32": (("int32", "float32"), ("float32", "float32")),
}

_OTHER_HOT_TYPES = (("int64", "int64"),)


def _hot_plan(site: Site) -> tuple[str, str]:
    """The types of the number of classes and of the two values."""
    return site.draws.choice(_HOT_TYPES.get(site.dtype, _OTHER_HOT_TYPES))


def _depth(site: Site) -> Constant:
    """How many classes: a scalar or a vector of one."""
    most = max(1, min(2 * site.limits.max_dim, growth(site)))
    shape = () if site.draws.chance(0.5) else (1,)
    return literal(site.plan[0], (site.draws.between(1, most),), shape)


def _off_on(site: Site) -> Constant:
    return literal(site.plan[1], site.draws.choice(((0, 1), (0, 1), (1, 0), (2, 5))))


def _one_hot(site: Site) -> tuple[TensorType, ...]:
    classes, shape = whole_numbers(site, 1), list(site.shape)
    axis = site.get("axis")
    shape.insert(axis if axis >= 0 else axis + site.rank + 1, None if classes is None else int(classes[0]))
    return (TensorType(site.type(2).dtype, tuple(shape)),)


def _two_values(site: Site) -> Interval:
    values = site.constants[2]
    assert values is not None
    return bounds(values)


def _torch_one_hot(site: Site, names: Sequence[str]) -> str:
    """An index matches its class counted from either end."""
    axis, values = site.get("axis"), site.constants[2]
    assert values is not None
    classes, off_on = int(site.numbers(1)[0]), numbers(values).tolist()
    axis = axis if axis >= 0 else axis + site.rank + 1
    counted = f"torch.arange({classes}).reshape({[classes] + [1] * (site.rank - axis)})"
    indices = f"{names[0]}.to(torch.int64).unsqueeze({axis})"
    dtype = f"torch.{values.dtype}"
    return (
        f"torch.where(({indices} == {counted}) | ({indices} + {classes} == {counted}), "
        f"torch.tensor({off_on[1]!r}, dtype={dtype}), torch.tensor({off_on[0]!r}, dtype={dtype}))"
    )


# ReverseSequence


def _reverse_plan(site: Site) -> None:
    """ONNX's defaults (time 0, batch 1) or the other way round; defaults are left out now and then."""
    time = site.draws.below(2)
    for name, axis, default in (("time_axis", time, 0), ("batch_axis", 1 - time, 1)):
        if axis != default or site.draws.chance(0.5):
            site.attributes[name] = axis


def _beginnings(site: Site) -> Constant:
    shape = site.dims(0)
    time, batch = shape[site.get("time_axis")], shape[site.get("batch_axis")]
    return int64(*repeated(site, 1, time, batch))


def _torch_reverse(site: Site, names: Sequence[str]) -> str:
    """Each place takes the element at the other end of its sequence's beginning, or its own."""
    time, batch = site.get("time_axis"), site.get("batch_axis")
    steps = range(site.dims(0)[time])
    places = [[last - 1 - step if step < last else step for step in steps] for last in site.numbers(1)]
    shape = [1] * site.rank
    shape[time], shape[batch] = len(steps), len(places)
    turned = f"{listed(places)}{'.t()' if time < batch else ''}.reshape({shape})"
    return f"torch.take_along_dim({names[0]}, {turned}, {time})"


def _reverse_sequence(since: int, dtypes: tuple[str, ...]) -> Operator:
    axis = Choice(0, 1)
    return Operator(
        "ReverseSequence",
        since,
        slots=(LEAD, Auxiliary(_beginnings)),
        ranks=_MATRICES,
        within=whole,
        dtypes=dtypes,
        plan=_reverse_plan,
        settings=(
            planned("time_axis", 0, axis),
            planned("batch_axis", 1, axis),
        ),
        torch=spelled(_torch_reverse),
    )


def _eye_like(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "EyeLike",
        since,
        ranks=(2,),
        infer=_eye,
        values=lambda site: UNIT,
        within=whole,
        dtypes=dtypes,
        settings=(
            Setting("dtype", Made(_eye_dtype, lambda value, site: value in _NAMES), omit=0.5),
            Setting("k", Made(_off_diagonal, _whole_number), omit=0.4, default=0),
        ),
        torch=spelled(_torch_eye),
    )


register(
    Operator("Trilu", 14, slots=(LEAD, Auxiliary(_diagonal)), degrees=(1, 2), ranks=_MATRICES,
             values=with_zero, within=whole, dtypes=ANY,
             settings=(Setting("upper", Choice(0, 1), omit=0.3, default=1),), torch=spelled(_torch_trilu)),
    _eye_like(9, _BUT_BFLOAT16),
    _eye_like(22, ANY),
    Operator("OneHot", 11, slots=(LEAD, Auxiliary(_depth), Auxiliary(_off_on)), ranks=(1, 2, 3, 4),
             plan=_hot_plan,
             infer=_one_hot, values=_two_values, within=whole, dtypes=_NUMBERS_BUT_BFLOAT16,
             settings=(Setting("axis", Between(lambda site: -site.rank - 1, lambda site: site.rank), omit=0.4,
                               default=-1),),
             torch=spelled(_torch_one_hot)),
    _reverse_sequence(10, _BUT_BFLOAT16),
    _reverse_sequence(28, ANY),
)  # fmt: skip
