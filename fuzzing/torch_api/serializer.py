"""Serializes a live call of torch: Python values become typed arguments, tensors become inputs."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzzing.backends.base import Unsupported
from fuzzing.backends.shared.torch_programs import from_torch
from fuzzing.cases import (
    Argument,
    Device,
    Dtype,
    Input,
    Layout,
    MemoryFormat,
    Name,
    NewObject,
    Recipe,
    Tensor,
    TensorArg,
    TensorLiteral,
)
from fuzzing.cases.arguments import LITERALS, MAX_LITERAL, check_dotted
from fuzzing.cases.source_templates import SPARSE
from fuzzing.cases.values import CARRIERS, RAW_DTYPES
from fuzzing.errors import CaseFormatError

if TYPE_CHECKING:
    import torch

MAX_TENSOR_BYTES = 1 << 20  # of one input; what a library's own tests take is a few kilobytes
#: Beyond this many bytes of plain numbers a Serializer that may redraw writes a recipe.
SMALL_TENSOR_BYTES = 1 << 14
MAX_REDRAWN_ELEMENTS = 1 << 22  # 16 MiB of float32, which a compiler under test still runs in a second
_EXACT = 1 << 53  # float64, which recipes draw in, holds every whole number up to here
_PUBLIC = ("torch", "torch.nn", "torch.nn.functional", "torch.Tensor")  # where people look first
_MAX_SPREAD = 64  # memory of a strided view, as a multiple of its elements


class NotSerializableError(Exception):
    """A case cannot hold a value; the text is the skip's reason, `detail` its particulars."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


#: How a module was made: the arguments of its class; None where nobody saw it.
FindConstructorArguments = Callable[[Any], "tuple[Sequence[Any], Mapping[str, Any]] | None"]


def _not_recorded(_: Any) -> None:
    return None


class Serializer:
    """Serializes the arguments of one call.

    inputs  the tensors met so far, by argument names; one tensor met twice is one input
    made    constructor calls of modules among the arguments
    redraw  large tensors become recipes with their range, instead of keeping their elements
    """

    def __init__(self, *, made: FindConstructorArguments = _not_recorded, redraw: bool = False) -> None:
        self.inputs: dict[str, Input] = {}
        self._made = made
        self._redraw = redraw
        self._serialized: dict[int, tuple[torch.Tensor, TensorArg]] = {}  # the tensor is kept: ids are reused

    def args(self, values: Sequence[Any]) -> tuple[Argument, ...]:
        """Positional arguments."""
        return tuple(self.argument(value, "x") for value in values)

    def kwargs(self, values: Mapping[str, Any]) -> tuple[tuple[str, Argument], ...]:
        """Keyword arguments; a tensor is named after its keyword."""
        return tuple((name, self.argument(value, name)) for name, value in values.items())

    def argument(self, value: Any, name: str) -> Argument:
        """One argument, whose tensors are named after `name`. Raises NotSerializableError."""
        import torch

        if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str):
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value, name)
        if isinstance(value, slice):
            return slice(*(self.argument(part, name) for part in (value.start, value.stop, value.step)))
        if isinstance(value, (list, tuple)):
            return self._sequence(value, name)
        if isinstance(value, dict):
            return {str(key): self.argument(item, name) for key, item in value.items()}
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return NewObject(public_name(type(value)), (), self.kwargs(fields))
        return _serialize_atom(value)

    def _sequence(self, value: Sequence[Any], name: str) -> Argument:
        import torch

        items = [self.argument(item, name) for item in value]
        if type(value) is list:
            return items
        if type(value) in (tuple, torch.Size):
            return tuple(items)
        raise NotSerializableError("an argument is of a type that has no form as text", type(value).__name__)

    def _module(self, module: torch.nn.Module) -> Argument:
        """The module as a constructor call. Its own parameters would be redrawn at each call."""
        if next(module.parameters(), None) is not None:
            raise NotSerializableError("an argument is a module with parameters", type(module).__name__)
        return _new(module, self._made)

    def _tensor(self, tensor: torch.Tensor, name: str) -> Argument:
        if id(tensor) not in self._serialized:
            argument, value = serialize_tensor(tensor, self._unused_name(name), redraw=self._redraw)
            self._serialized[id(tensor)] = tensor, argument
            self.inputs[argument.name] = value
        return self._serialized[id(tensor)][1]

    def _unused_name(self, name: str) -> str:
        name = _valid_name(name)
        if name not in self.inputs:
            return name
        names = (f"{name}{count}" for count in range(1, len(self.inputs) + 1))
        return next(free for free in names if free not in self.inputs)


@functools.lru_cache(maxsize=1024)
def _valid_name(name: str) -> str:
    try:
        TensorArg(name)
    except CaseFormatError:
        return f"{name}_"
    return name


class InitSerializer(Serializer):
    """Serializes constructor arguments: tensors become literals, modules constructor calls."""

    def _module(self, module: torch.nn.Module) -> Argument:
        return _new(
            module, self._made
        )  # part of the module that is made, so its parameters are drawn with it

    def _tensor(self, tensor: torch.Tensor, name: str) -> Argument:  # noqa: ARG002
        return serialize_literal(tensor)


def _new(module: torch.nn.Module, made: FindConstructorArguments) -> NewObject:
    given = made(module)
    if given is None:
        raise NotSerializableError("an argument is a module that was made elsewhere", type(module).__name__)
    serializer = InitSerializer(made=made)
    return NewObject(public_name(type(module)), serializer.args(given[0]), serializer.kwargs(given[1]))


def _serialize_atom(value: Any) -> Argument:
    import torch

    atoms: tuple[tuple[type, Any], ...] = (
        (torch.dtype, Dtype),
        (torch.layout, Layout),
        (torch.memory_format, MemoryFormat),
        (torch.device, Device),
    )
    for kind, form in atoms:
        if isinstance(value, kind):
            return form(str(value).removeprefix("torch."))
    if isinstance(value, np.generic):
        return value.item()
    if callable(value):
        return Name(public_name(value))
    raise NotSerializableError("an argument is of a type that has no form as text", type(value).__name__)


def public_name(function: Any) -> str:
    """A function's dotted name below torch. Raises NotSerializableError if there is none."""
    own = getattr(function, "__module__", None) or ""
    names = {getattr(function, part, None) or "" for part in ("__name__", "__qualname__")}
    for module in (*_PUBLIC, own):
        for name in sorted(names):
            try:
                dotted = check_dotted(f"{module}.{name}", "torch")
            except CaseFormatError:
                continue
            if resolve(dotted) is function:
                return dotted
    raise NotSerializableError("an argument is a function without a name in torch", repr(function)[:80])


def resolve(dotted: str) -> Any:
    """The object of a dotted name below torch; None if there is none."""
    import torch

    found: Any = torch
    for part in dotted.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def serialize_literal(tensor: torch.Tensor) -> TensorLiteral:
    """A small tensor with its elements. Raises NotSerializableError."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in LITERALS or _is_unusual(tensor):
        raise NotSerializableError("a module is made from a tensor of a type that has no literal form", dtype)
    if tensor.numel() > MAX_LITERAL:
        raise NotSerializableError("a module is made from a large tensor", str(tuple(tensor.shape)))
    elements = tensor.detach().cpu().reshape(-1).tolist()
    return TensorLiteral(dtype, tuple(tensor.shape), tuple(elements))


def _is_unusual(tensor: torch.Tensor) -> bool:
    import torch

    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return not plain or tensor.layout is not torch.strided or tensor.device.type == "meta"


def serialize_tensor(tensor: torch.Tensor, name: str, *, redraw: bool = False) -> tuple[TensorArg, Input]:
    """A tensor as an input called `name`, and the argument that lays it out. Raises NotSerializableError.

    redraw  a large one becomes a recipe for numbers of its range
    """
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise NotSerializableError("an argument is a tensor subclass", type(tensor).__name__)
    if tensor.device.type == "meta":
        raise NotSerializableError("a tensor has no elements", "meta")
    recipe = _redraw(tensor, name) if redraw else None
    value = recipe_or_value(_elements(tensor)) if recipe is None else recipe
    if tensor.layout is not torch.strided:
        return _serialize_sparse(tensor, name), value
    plain = tensor.is_contiguous() and tensor.storage_offset() == 0
    if plain or (not tensor.numel() and tensor.is_contiguous()):
        return TensorArg(name), value
    steps = sum((dim - 1) * step for dim, step in zip(tensor.shape, tensor.stride(), strict=True) if dim)
    if tensor.storage_offset() + steps > _MAX_SPREAD * max(tensor.numel(), _MAX_SPREAD):
        raise NotSerializableError("a tensor is a view of a much larger memory")
    return TensorArg(name, tuple(tensor.stride()), int(tensor.storage_offset())), value


def _elements(tensor: torch.Tensor) -> Tensor:
    if tensor.numel() * tensor.element_size() > MAX_TENSOR_BYTES:
        raise NotSerializableError("a tensor is too large to keep", str(tuple(tensor.shape)))
    if (plain := _plain_elements(tensor)) is not None:
        return plain
    try:
        return from_torch(tensor)
    except Unsupported as error:
        raise NotSerializableError("a tensor is of a type that a case cannot hold", str(error)) from None


def _plain_elements(tensor: torch.Tensor) -> Tensor | None:
    """As `from_torch`, five times as fast, for an ordinary tensor; None for any other."""
    import torch

    name = _plain_dtypes().get(tensor.dtype)
    if name is None or tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return None
    if tensor.is_neg() or tensor.is_conj() or tensor.is_nested:
        return None
    return Tensor(name, tuple(tensor.shape), tensor.detach().numpy().tobytes())


@functools.cache
def _plain_dtypes() -> dict[torch.dtype, str]:
    import torch

    plain = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64")
    return {getattr(torch, name): name for name in plain} if sys.byteorder == "little" else {}


def _redraw(tensor: torch.Tensor, name: str) -> Recipe | None:
    """A recipe for a large tensor of plain numbers; None for tensors that keep their elements: sparse ones,
    overlapping views, types without recipes.
    """
    import torch

    if tensor.numel() * tensor.element_size() <= SMALL_TENSOR_BYTES or tensor.layout is not torch.strided:
        return None
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in CARRIERS or dtype in RAW_DTYPES or tensor.is_complex() or tensor.is_nested:
        return None
    if torch._debug_has_internal_overlap(tensor) != 0:
        return None
    if tensor.numel() > MAX_REDRAWN_ELEMENTS:
        raise NotSerializableError("a tensor is too large to keep", str(tuple(tensor.shape)))
    least, most = (float(bound) for bound in torch.aminmax(tensor.detach().cpu()))
    if not (math.isfinite(least) and math.isfinite(most) and max(abs(least), abs(most)) < _EXACT):
        return None
    kind = "uniform" if tensor.is_floating_point() else "integers"
    seed = zlib.crc32(f"{name} {dtype} {tuple(tensor.shape)}".encode())
    try:
        return Recipe(kind, dtype, tuple(tensor.shape), least, most, seed)
    except CaseFormatError:  # a type or range beyond what recipes draw
        return None


def _serialize_sparse(tensor: torch.Tensor, name: str) -> TensorArg:
    """Only by the dense form, without stored zeros or another order of indices."""
    layout = str(tensor.layout).removeprefix("torch.")
    if layout not in SPARSE:
        raise NotSerializableError("a tensor is of a layout that a case cannot hold", layout)
    again = getattr(tensor.detach().to_dense(), SPARSE[layout])()
    if not _same_parts(tensor.detach(), again):
        raise NotSerializableError("a sparse tensor stores what its dense form does not hold")
    return TensorArg(name, layout=layout)


def _same_parts(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    if one.layout is torch.sparse_coo:
        if not one.is_coalesced() or one.sparse_dim() != other.sparse_dim():
            return False
        pairs = [(one.indices(), other.indices()), (one.values(), other.values())]
    elif one.layout is torch.sparse_csr:
        pairs = [(one.crow_indices(), other.crow_indices()), (one.col_indices(), other.col_indices())]
    else:
        pairs = [(one.ccol_indices(), other.ccol_indices()), (one.row_indices(), other.row_indices())]
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


def recipe_or_value(tensor: Tensor) -> Input:
    """The constant recipe that gives these very bytes, or the bytes."""
    if tensor.dtype in RAW_DTYPES:
        return tensor
    array = tensor.array()
    if array.dtype.kind not in "bif" or not array.size:
        return tensor
    first, last = array.flat[0], array.flat[-1]
    if first != last or not math.isfinite(first):  # most are no constants, which a look at the ends shows
        return tensor
    try:
        recipe = Recipe("constant", tensor.dtype, tensor.shape, float(first), 0.0, 0)
    except CaseFormatError:  # a whole number that float64 does not hold
        return tensor
    return recipe if recipe.draw() == tensor else tensor
