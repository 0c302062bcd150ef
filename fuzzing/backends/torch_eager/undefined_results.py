"""Results that torch leaves open: the order of equal elements, numbers that an integer type cannot hold.

Torch's reference states for which functions it promises nothing, so compilers need not agree with its result.
Two runs show which elements of the outputs depend on such a result: those that differ. Equal floats are
separated by moving the inputs; integers, bools and equal floats of the program itself are not.

    topk                    "the indices of tied elements are not guaranteed to be stable"; with
                            `sorted=False` the order of all that is returned
    sort, argsort           the order of equivalent elements, unless `stable=True`
    kthvalue, median,       which of several equal elements the index is of ("may nondeterministically return
    nanmedian, mode         indices for any of them", "not necessarily the first occurrence"; mode is silent)
    Tensor.to and the like  NaN, an infinity, or a float beyond the integer type's range: undefined in C++
    arange                  how many numbers, where rounding decides whether the last is below `end`:
                            "subject to floating point rounding errors when comparing against end"
    var_mean and others     whether a mean of infinities is one: their algorithm subtracts them and gives NaN,
    (_MEANS)                where `mean` and `native_batch_norm` give the infinity
    add, mul, sum and       signed integers whose result does not fit: undefined in C++, where torch mostly
    others (_OVERFLOWING)   wraps and a compiler that computes in a wider type saturates; unsigned ones wrap

`argmax`, `argmin`, `max` and `min` promise the first index, so their ties are compared. Imported in the
worker, by functions, so that torch is imported late.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

#: An operator's arguments by name, and its result.
_Given = Dict[str, Any]

_SIGNED = frozenset((torch.int8, torch.int16, torch.int32, torch.int64))
#: Operators, in-place forms included, whose result may be larger than their inputs.
_OVERFLOWING = (
    frozenset(("abs", "add", "addcmul", "div", "floor_divide", "mul", "neg", "pow", "rsub", "sub"))
    | frozenset(("cumprod", "cumsum", "nansum", "prod", "sum", "trace"))
    | frozenset(("addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm"))
    | frozenset(("dot", "linalg_cross", "mm", "mv", "vdot"))
)


class FillUndefined(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within it open results become `fill`; open indices become another valid one if `fill` is 1."""

    def __init__(self, fill: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._fill = fill

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs one operator and fills the open parts of its result."""
        kwargs, name = kwargs or {}, str(func)
        # Before the operator, which may write into its inputs.
        exact = _exact(func, args, kwargs) if name.split(".")[1].rstrip("_") in _OVERFLOWING else None
        if name in _ARANGE and self._fill:
            return _longer(_by_name(func, args, kwargs), func(*args, **kwargs))
        result = func(*args, **kwargs)
        if name == "aten._to_copy.default":
            return self._cast(args[0], result)
        if name in _TIES:
            return _TIES[name](_by_name(func, args, kwargs), result, self._fill)
        if name in _MEANS:
            return self._infinite_mean(_MEANS[name](_by_name(func, args, kwargs)), result)
        return result if exact is None else self._overflow(exact, result, (*args, *kwargs.values()))

    def _cast(self, source: Any, result: Any) -> Any:
        whole = not (result.dtype.is_floating_point or result.dtype.is_complex or result.dtype == torch.bool)
        if not source.dtype.is_floating_point or not whole:
            return result
        fits = _fits(torch.trunc(source.double()), result.dtype).to(result.device)
        return torch.where(fits, result, self._fill).to(result.dtype)

    def _infinite_mean(self, mean: Any, result: Any) -> Any:
        known = result[1]
        open_ = known.isnan() & mean.reshape(known.shape).isinf()
        return (result[0], torch.where(open_, self._fill, known), *result[2:])

    def _overflow(self, exact: Any, result: Any, given: Any) -> Any:
        if result.dtype not in _SIGNED or exact.shape != result.shape:
            return result
        filled = torch.where(_fits(exact, result.dtype), result, self._fill).to(result.dtype)
        return result.copy_(filled) if any(result is one for one in given) else filled


def _fits(number: Any, dtype: Any) -> Any:
    """Mask of the floats that an integer type holds; next to 2**63 float64 is not exact enough, and they do
    not count.
    """
    limits = torch.iinfo(dtype)
    return (number >= float(limits.min)) & (number < float(limits.max + 1))


def _exact(func: Any, args: Any, kwargs: _Given) -> Any:
    """The result of an integer operator in float64; None if an operand is not an integer."""
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    if any(one.dtype.is_floating_point or one.dtype.is_complex for one in tensors):
        return None
    args, kwargs = tree_map_only(torch.Tensor, torch.Tensor.double, (args, kwargs))
    if isinstance(kwargs.get("dtype"), torch.dtype):
        kwargs = {**kwargs, "dtype": torch.float64}
    exact = func(*args, **kwargs)
    return exact if isinstance(exact, torch.Tensor) else None


def _by_name(func: Any, args: Any, kwargs: _Given) -> _Given:
    """The arguments of one call by name, defaults included."""
    given = {argument.name: argument.default_value for argument in func._schema.arguments}
    given.update(zip(given, args))
    given.update(kwargs)
    return given


def _longer(given: _Given, result: Any) -> Any:
    """The numbers of an `arange`, and one more or one fewer where rounding decides how many there are."""
    begin, end, step = given.get("start", 0), given["end"], given.get("step", 1)
    bounds = [float(number) for number in (begin, end, step)]
    if not result.dtype.is_floating_point or result.numel() < 1 or all(map(_is_float32, bounds)):
        return result
    count = (bounds[1] - bounds[0]) / bounds[2]
    nearest = round(count)
    slack = 4 * _ROUNDING * ((abs(bounds[0]) + abs(bounds[1])) / abs(bounds[2]) + abs(count))
    if abs(count - nearest) > slack:
        return result
    other = nearest if result.numel() > nearest else nearest + 1
    return torch.arange(other, dtype=result.dtype, device=result.device) * bounds[2] + bounds[0]


def _is_float32(number: float) -> bool:
    return abs(number) < 1e38 and struct.unpack("f", struct.pack("f", number))[0] == number


def _sorted(given: _Given, result: Any, fill: int) -> Any:
    """A sort; when filled, each of several equal elements has the next one's index."""
    if given.get("stable") or not fill:
        return result
    values, indices = result
    return values, _turned(values, indices, given["dim"])


def _top(given: _Given, result: Any, fill: int) -> Any:
    """The first `k` of a sort: which they are is open too if others equal the last."""
    tensor, dim, count = given["self"], given["dim"], given["k"]
    if tensor.dim() == 0:
        return result
    values, indices = torch.sort(tensor, dim=dim, descending=given["largest"])
    indices = _turned(values, indices, dim) if fill else indices
    found = values.narrow(dim, 0, count), indices.narrow(dim, 0, count)
    return found if given["sorted"] or not fill else tuple(part.roll(1, dim) for part in found)


def _turned(values: Any, indices: Any, dim: int) -> Any:
    """`indices` of sorted `values`, with each group of equal values rotated by one."""
    if values.dim() == 0 or values.numel() == 0:
        return indices
    values, indices = values.movedim(dim, -1), indices.movedim(dim, -1)
    ties = _equal(values[..., 1:], values[..., :-1])
    none = torch.zeros_like(values[..., :1], dtype=torch.bool)
    places = torch.arange(values.shape[-1], device=values.device).expand(values.shape)
    first = torch.where(torch.cat((none, ties), -1), 0, places).cummax(-1).values
    following = torch.where(torch.cat((ties, none), -1), places + 1, first)
    return indices.gather(-1, following).movedim(-1, dim)


def _another(given: _Given, result: Any, fill: int) -> Any:
    """The index of one element; when filled, of another that equals it, if there is one."""
    tensor, dim = given["self"], given["dim"]
    values, indices = result
    if not fill or tensor.dim() == 0 or tensor.numel() == 0:
        return result
    kept = given["keepdim"]
    value, index = (values, indices) if kept else (values.unsqueeze(dim), indices.unsqueeze(dim))
    same = _equal(tensor, value).scatter(dim, index, False).to(torch.uint8)
    other = torch.where(same.amax(dim, True).bool(), same.argmax(dim, True), index)
    return values, other if kept else other.squeeze(dim)


def _equal(one: Any, other: Any) -> Any:
    return (one == other) | ((one != one) & (other != other))


#: Operators whose second result is a mean → the mean by itself, shaped like it or not.
_MEANS: Dict[str, Callable[[_Given], Any]] = {
    **{
        f"aten.{name}_mean.correction": lambda given: given["self"].mean(given["dim"], given["keepdim"])
        for name in ("var", "std")
    },
    "aten.native_layer_norm.default": lambda given: (
        given["input"].flatten(given["input"].dim() - len(given["normalized_shape"])).mean(-1)
    ),
    "aten.native_group_norm.default": lambda given: (
        given["input"]
        .reshape(given["N"] * given["group"], given["C"] // given["group"] * given["HxW"])
        .mean(-1)
    ),
}
#: Half the distance of float32 numbers at 1; compilers compute the bounds of an `arange` in float32.
_ROUNDING = 2.0**-24
_ARANGE = frozenset(f"aten.arange.{overload}" for overload in ("default", "start", "start_step"))
_TIES: Dict[str, Callable[[_Given, Any, int], Any]] = {
    "aten.sort.default": _sorted,
    "aten.sort.stable": _sorted,
    "aten.topk.default": _top,
    "aten.kthvalue.default": _another,
    "aten.median.dim": _another,
    "aten.nanmedian.dim": _another,
    "aten.mode.default": _another,
}
