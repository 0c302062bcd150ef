"""Typed arguments of a call: Python values with one JSON form and one Python text.

null, true, 3, 1.5, "text" and [..] are themselves in JSON (a whole float keeps its point: 1.0); anything else
is an object with one tag, such as {"tuple": [1, 2]}, {"dtype": "float32"} or {"tensor": "x"}. Two arguments
are equal if their JSON is. `argument_reader` reads the JSON; `argument_text` writes the Python text.
"""

from __future__ import annotations

import keyword
import math
import re
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterator, Optional, Tuple, Union

from fuzzing.cases.values import check_text, element_count
from fuzzing.errors import CaseFormatError

MAX_DEPTH = 24  # arguments of real calls nest three or four levels
MAX_STORAGE = 1 << 28  # elements of the memory behind a strided view, as values.MAX_ELEMENTS
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1  # the range of torch's scalars: int64 and uint64
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEVICE = re.compile(r"[a-z]+(:[0-9]{1,3})?")
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc")
#: Element types of literal tensors, and the Python numbers that hold them exactly.
LITERALS: Dict[str, type] = {
    "bool": bool,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8"), int),
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), float),
    **dict.fromkeys(("complex64", "complex128"), complex),
}
MAX_LITERAL = 64  # elements of a literal tensor; larger tensors belong into inputs
_RESERVED_NAMES = frozenset({"self", "torch", "keras", "np", "hashlib"})  # names that the text itself uses


@dataclass(frozen=True)
class TensorArg:
    """An input of the case, by name. Its dtype and data, for torch also its shape, are those of the input.

    strides, offset  its memory layout, in elements; None for C order from the start. Strides of 0 and
                     overlapping views are allowed if the data agrees
    layout           one of LAYOUTS; the data is dense in any case
    dtype, shape     as declared by the program; None if the program declares none (torch)
    """

    name: str
    strides: Optional[Tuple[int, ...]] = None
    offset: int = 0
    layout: str = "strided"
    dtype: Optional[str] = None
    shape: Optional[Tuple[int, ...]] = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.layout not in LAYOUTS:
            raise CaseFormatError(f"a tensor's layout is one of {', '.join(LAYOUTS)}, not {self.layout!r}")
        if self.strides is None and self.offset:
            raise CaseFormatError("a tensor with an offset needs strides")
        if self.strides is not None and self.layout != "strided":
            raise CaseFormatError(f"a {self.layout} tensor has no strides")
        if any(not 0 <= number < MAX_STORAGE for number in (*(self.strides or ()), self.offset)):
            raise CaseFormatError(f"strides and offset must lie in 0..{MAX_STORAGE - 1}")
        if self.shape is not None:
            element_count(self.shape)
        if self.dtype is not None and not _IDENTIFIER.fullmatch(self.dtype):
            raise CaseFormatError(f"{self.dtype!r} is no element type")


@dataclass(frozen=True, eq=False)
class TensorLiteral:
    """A small tensor given by its elements, where inputs are not possible: an argument of a torch module's
    class.

    dtype   one of LITERALS
    values  its elements in C order, as Python numbers of the type in LITERALS
    """

    dtype: str
    shape: Tuple[int, ...]
    values: Tuple[Union[bool, int, float, complex], ...]

    def __post_init__(self) -> None:
        kind = LITERALS.get(self.dtype)
        if kind is None:
            raise CaseFormatError(f"a literal tensor cannot be of type {self.dtype!r}")
        if len(self.values) != element_count(self.shape) or len(self.values) > MAX_LITERAL:
            raise CaseFormatError(
                f"a literal tensor of shape {list(self.shape)} has {len(self.values)} elements; "
                f"the shape must agree, and {MAX_LITERAL} is the limit"
            )
        if not all(type(value) is kind for value in self.values):
            raise CaseFormatError(f"a literal {self.dtype} tensor holds numbers of type {kind.__name__}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorLiteral) and argument_to_json(self) == argument_to_json(other)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))


@dataclass(frozen=True)
class Dtype:
    """`torch.<name>`, such as float32."""

    name: str

    def __post_init__(self) -> None:
        _check_identifier(self.name)


@dataclass(frozen=True)
class Layout:
    """`torch.<name>`, such as sparse_coo."""

    name: str

    def __post_init__(self) -> None:
        _check_identifier(self.name)


@dataclass(frozen=True)
class MemoryFormat:
    """`torch.<name>`, such as channels_last."""

    name: str

    def __post_init__(self) -> None:
        _check_identifier(self.name)


@dataclass(frozen=True)
class Device:
    """`torch.device(<name>)`. "cpu" means the device under test, DEVICE in the text."""

    name: str

    def __post_init__(self) -> None:
        if not _DEVICE.fullmatch(self.name):
            raise CaseFormatError(f"{self.name!r} is no device")


@dataclass(frozen=True)
class Name:
    """An object of the library by its dotted name, such as a function passed as an argument."""

    name: str

    def __post_init__(self) -> None:
        check_dotted(self.name, "torch", "keras")


@dataclass(frozen=True, eq=False)
class NewObject:
    """An object of the library created for the call: the layer inside a wrapper, an initializer."""

    api: str
    args: Tuple[Argument, ...] = ()
    kwargs: Tuple[Tuple[str, Argument], ...] = ()

    def __post_init__(self) -> None:
        check_dotted(self.api, "torch", "keras")
        object.__setattr__(self, "args", tuple(self.args))
        object.__setattr__(self, "kwargs", sorted_kwargs(dict(self.kwargs)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NewObject) and argument_to_json(self) == argument_to_json(other)

    def __hash__(self) -> int:
        return hash(self.api)


#: None, bool, int, float, complex, str, Ellipsis, slice, list, tuple, dict with text keys, and the classes
#: above, nested.
Argument = Any
Kwargs = Tuple[Tuple[str, Argument], ...]


def check_dotted(name: object, *roots: str) -> str:
    """Returns `name`, a dotted identifier below one of `roots`; raises CaseFormatError if it is not."""
    parts = name.split(".") if isinstance(name, str) else []
    if len(parts) < 2 or parts[0] not in roots or not all(_is_identifier(part) for part in parts):
        raise CaseFormatError(f"{name!r} is not a dotted name below {' or '.join(roots)}")
    return ".".join(parts)


def check_name(name: object) -> str:
    """Returns `name` if it can name an input in Python text; raises CaseFormatError if it cannot."""
    if not isinstance(name, str) or not _is_identifier(name) or name in _RESERVED_NAMES:
        raise CaseFormatError(f"{name!r} cannot name an input: it must be a Python identifier of its own")
    return name


def _check_identifier(name: object) -> None:
    if not isinstance(name, str) or not _is_identifier(name):
        raise CaseFormatError(f"{name!r} is not an identifier")


def _is_identifier(text: str) -> bool:
    return bool(_IDENTIFIER.fullmatch(text)) and not keyword.iskeyword(text)


def sorted_kwargs(kwargs: Dict[Any, Argument]) -> Kwargs:
    """Keyword arguments sorted by name, so that equal calls have equal forms."""
    for name in kwargs:
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise CaseFormatError(f"{name!r} cannot name a keyword argument")
    return tuple(sorted(kwargs.items(), key=lambda item: item[0]))


def tensors_in(arguments: Iterator[Argument]) -> Tuple[TensorArg, ...]:
    """The distinct inputs named in `arguments`; raises CaseFormatError if two descriptions of one differ."""
    found: Dict[str, TensorArg] = {}
    for argument in arguments:
        for tensor in _walk(argument):
            if found.setdefault(tensor.name, tensor) != tensor:
                raise CaseFormatError(f"the input {tensor.name!r} is described in two ways")
    return tuple(found.values())


def _walk(argument: Argument) -> Iterator[TensorArg]:
    if isinstance(argument, TensorArg):
        yield argument
    elif isinstance(argument, (list, tuple)):
        for item in argument:
            yield from _walk(item)
    elif isinstance(argument, dict):
        for item in argument.values():
            yield from _walk(item)
    elif isinstance(argument, slice):
        yield from _walk((argument.start, argument.stop, argument.step))
    elif isinstance(argument, NewObject):
        yield from _walk((argument.args, dict(argument.kwargs)))


def rename_tensors(argument: Argument, rename: Callable[[str], str]) -> Argument:
    """The argument with other names for the inputs in it."""
    if isinstance(argument, TensorArg):
        return replace(argument, name=rename(argument.name))
    if isinstance(argument, (list, tuple)):
        return type(argument)([rename_tensors(item, rename) for item in argument])
    if isinstance(argument, dict):
        return {name: rename_tensors(item, rename) for name, item in argument.items()}
    if isinstance(argument, slice):
        parts = (argument.start, argument.stop, argument.step)
        return slice(*[rename_tensors(item, rename) for item in parts])
    if isinstance(argument, NewObject):
        kwargs = tuple([(name, rename_tensors(item, rename)) for name, item in argument.kwargs])
        return replace(argument, args=rename_tensors(argument.args, rename), kwargs=kwargs)
    return argument


# To JSON


def argument_to_json(argument: Argument, depth: int = 0) -> Any:
    """The argument as JSON; raises CaseFormatError for a Python value without a form."""
    if depth > MAX_DEPTH:
        raise CaseFormatError(f"arguments nest deeper than {MAX_DEPTH} levels")
    write = _WRITERS.get(type(argument))
    if write is None:
        raise CaseFormatError(f"an argument of type {type(argument).__name__} cannot be written as text")
    return write(argument, depth + 1)


def whole_number(value: int, _: int = 0) -> int:
    """Returns `value` if it is in torch's range; raises CaseFormatError if not."""
    if not _LEAST <= value <= _MOST:
        raise CaseFormatError("a whole number must lie in -2**63..2**64-1")
    return value


def _float_to_json(value: float, _: int = 0) -> Any:
    return value if math.isfinite(value) else {"float": str(value)}


def _dict_to_json(value: Dict[Any, Any], depth: int) -> Any:
    if not all(type(key) is str for key in value):
        raise CaseFormatError("a dict's keys must be texts")
    return {"dict": [[check_text(key), argument_to_json(item, depth)] for key, item in value.items()]}


def _tensor_to_json(value: TensorArg, _: int) -> Any:
    obj: Dict[str, Any] = {"tensor": value.name}
    if value.strides is not None:
        obj.update(strides=list(value.strides), offset=value.offset)
    if value.layout != "strided":
        obj["layout"] = value.layout
    if value.dtype is not None:
        obj["dtype"] = value.dtype
    if value.shape is not None:
        obj["shape"] = list(value.shape)
    return obj


def _literal_to_json(value: TensorLiteral, depth: int) -> Any:
    elements = [argument_to_json(element, depth) for element in value.values]
    return {"literal": elements, "dtype": value.dtype, "shape": list(value.shape)}


def _new_to_json(value: NewObject, depth: int) -> Any:
    return {
        "new": value.api,
        "args": [argument_to_json(item, depth) for item in value.args],
        "kwargs": kwargs_to_json(value.kwargs, depth),
    }


def kwargs_to_json(kwargs: Kwargs, depth: int = 0) -> Dict[str, Any]:
    """Keyword arguments as JSON."""
    return {name: argument_to_json(value, depth) for name, value in kwargs}


def _tagged(tag: str) -> Callable[[Any, int], Any]:
    return lambda value, _: {tag: value.name}


_WRITERS: Dict[type, Callable[[Any, int], Any]] = {
    type(None): lambda value, _: value,
    bool: lambda value, _: value,
    int: whole_number,
    float: _float_to_json,
    str: lambda value, _: check_text(value),
    complex: lambda value, _: {"complex": [_float_to_json(value.real), _float_to_json(value.imag)]},
    type(Ellipsis): lambda _, __: {"ellipsis": True},
    list: lambda value, depth: [argument_to_json(item, depth) for item in value],
    tuple: lambda value, depth: {"tuple": [argument_to_json(item, depth) for item in value]},
    dict: _dict_to_json,
    slice: lambda value, depth: {
        "slice": [argument_to_json(item, depth) for item in (value.start, value.stop, value.step)]
    },
    Dtype: _tagged("dtype"),
    Layout: _tagged("layout"),
    MemoryFormat: _tagged("memory_format"),
    Device: _tagged("device"),
    Name: _tagged("name"),
    TensorArg: _tensor_to_json,
    TensorLiteral: _literal_to_json,
    NewObject: _new_to_json,
}
