"""Inputs and outputs of programs, held as bytes.

A compiler's environment may be years old, so values use nothing but numpy: element types that numpy lacks
(bfloat16, float8, int4) are raw unsigned integers of the same width, and each backend reinterprets them.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Tuple, Union

import numpy as np

from fuzzing.errors import CaseFormatError

#: Element types by ONNX name, with the numpy type that carries them. 4-bit types take one byte per element,
#: as from `onnx.numpy_helper.to_array`.
CARRIERS: dict[str, str] = {
    "bool": "bool",
    "int8": "int8",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "uint8",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
    "bfloat16": "<u2",
    "float8_e4m3fn": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2": "uint8",
    "float8_e5m2fnuz": "uint8",
    "float8_e8m0fnu": "uint8",
    "float4_e2m1fn": "uint8",
    "int4": "uint8",
    "uint4": "uint8",
    "int2": "uint8",
    "uint2": "uint8",
}
STRING = "string"
_WIDTHS = {name: np.dtype(carrier).itemsize for name, carrier in CARRIERS.items()}

#: The element types whose carrier holds raw bits instead of values.
RAW_DTYPES = frozenset(name for name, carrier in CARRIERS.items() if np.dtype(carrier).name != name)

#: numpy's types that need no conversion, which nearly all arrays have. A table, since numpy computes a type's
#: name anew at each access.
_NATIVE_DTYPES = {np.dtype(carrier): name for name, carrier in CARRIERS.items() if name not in RAW_DTYPES}

MAX_RANK = 32  # numpy 1.x cannot hold more (NPY_MAXDIMS)
MAX_ELEMENTS = 1 << 28


@dataclass(frozen=True, init=False)
class Tensor:
    """A dense tensor: ONNX element type, shape, and its elements in C order, little endian.

    String tensors hold the UTF-8 JSON text of a flat list instead.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __init__(self, dtype: str, shape: tuple[int, ...], data: bytes) -> None:
        # There are several per case, and a frozen dataclass's own __init__ takes twice as long.
        self.__dict__.update(dtype=dtype, shape=shape, data=data)
        count = element_count(shape)
        width = _WIDTHS.get(dtype)
        if width is None:
            if dtype != STRING:
                raise CaseFormatError(f"unknown element type {dtype!r}")
            self._check_strings(count)
        elif len(data) != count * width:
            raise CaseFormatError(f"{dtype}{list(shape)} takes {count * width} bytes, {len(data)} are given")

    def _check_strings(self, count: int) -> None:
        try:
            items = json.loads(self.data.decode("utf-8"))  # json would guess the encoding of bytes
        except (ValueError, RecursionError) as error:
            raise CaseFormatError(f"a string tensor's data is not JSON: {error}") from None
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise CaseFormatError("a string tensor's data must be a flat list of strings")
        if len(items) != count:
            raise CaseFormatError(f"string{list(self.shape)} needs {count} items, got {len(items)}")
        for item in items:
            check_text(item)

    @classmethod
    def unvalidated(cls, dtype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
        """A tensor without checks, of parts known to fit together."""
        tensor = object.__new__(cls)
        tensor.__dict__.update(dtype=dtype, shape=shape, data=data)
        return tensor

    @classmethod
    def of(cls, array: Any, dtype: str | None = None) -> Tensor:
        """A tensor with `array`'s elements; `dtype` names its element type if numpy's does not.

        A raw element type takes an array of its carrier's type, or of a numpy extension type of that name;
        any other takes an array of any numbers, which are converted.
        """
        array = np.asarray(array)
        if dtype is None and array.dtype in _NATIVE_DTYPES:
            return cls(_NATIVE_DTYPES[array.dtype], array.shape, array.tobytes())
        if array.dtype.kind in "OUS":
            flat = [_string(item) for item in array.ravel().tolist()]
            return cls(STRING, array.shape, json.dumps(flat, ensure_ascii=False).encode())
        name = dtype or array.dtype.name
        carrier = CARRIERS.get(name)
        if carrier is None:
            raise CaseFormatError(f"unknown element type {name!r}")
        target = np.dtype(carrier)
        if array.dtype.name == name and name in RAW_DTYPES:
            array = array.view(target)
        elif name in RAW_DTYPES and array.dtype.name != target.name:
            raise CaseFormatError(f"{name} travels as {target.name}, not as {array.dtype.name}")
        return cls(name, array.shape, array.astype(target, copy=False).tobytes())

    def array(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only numpy array; raw carriers stay raw, strings are objects."""
        if self.dtype == STRING:
            return np.array(json.loads(self.data), dtype=object).reshape(self.shape)
        return np.frombuffer(self.data, dtype=CARRIERS[self.dtype]).reshape(self.shape)


@dataclass(frozen=True)
class Sequence:
    """An ONNX sequence: tensors in order."""

    items: tuple[Tensor, ...]


@dataclass(frozen=True)
class Absent:
    """An empty ONNX optional."""


Value = Union[Tensor, Sequence, Absent]


def value_to_json(value: Value) -> dict[str, Any]:
    """`value` as JSON; tensors' bytes in base64."""
    if isinstance(value, Tensor):
        text = base64.b64encode(value.data).decode("ascii")
        return {"dtype": value.dtype, "shape": list(value.shape), "data": text}
    if isinstance(value, Sequence):
        return {"sequence": [value_to_json(item) for item in value.items]}
    return {"absent": True}


def value_from_json(obj: object) -> Value:
    """The inverse of `value_to_json`; raises CaseFormatError for anything else."""
    if not isinstance(obj, dict):
        raise CaseFormatError(f"a value must be an object, not {type(obj).__name__}")
    if obj.keys() == {"absent"} and obj["absent"] is True:
        return Absent()
    if obj.keys() == {"sequence"} and isinstance(obj["sequence"], list):
        return Sequence(tuple(_tensor_from_json(item) for item in obj["sequence"]))
    return _tensor_from_json(obj)


def _tensor_from_json(obj: object) -> Tensor:
    if not isinstance(obj, dict):
        raise CaseFormatError(f"a tensor must be an object, not {type(obj).__name__}")
    if obj.keys() != {"dtype", "shape", "data"}:
        raise CaseFormatError(f"a tensor cannot have the keys {sorted(map(str, obj))}")
    dtype, shape, data = obj["dtype"], obj["shape"], obj["data"]
    if not isinstance(dtype, str) or not isinstance(data, str) or not isinstance(shape, list):
        raise CaseFormatError("a tensor needs a dtype, a list as shape and base64 data")
    if not all(type(dim) is int for dim in shape):
        raise CaseFormatError(f"a shape must be a list of integers, not {shape!r}")
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError as error:  # binascii.Error, or b64decode's error for other alphabets
        raise CaseFormatError(f"tensor data is not base64: {error}") from None
    return Tensor(dtype, tuple(shape), raw)


@lru_cache(maxsize=1 << 12)  # the same few shapes occur thousands of times
def element_count(shape: Tuple[int, ...]) -> int:
    """Number of elements of a tensor of `shape`; raises CaseFormatError if numpy could not hold it.

    A zero does not help: numpy multiplies the other dimensions as well.
    """
    if len(shape) > MAX_RANK:
        raise CaseFormatError(f"a tensor of {len(shape)} dimensions is over the limit of {MAX_RANK}")
    if not shape or 0 < min(shape) <= max(shape) < 1 << 63:  # nearly all shapes, of which there are many
        count = math.prod(shape)
        if count <= MAX_ELEMENTS:
            return count
    extent = 1
    for dim in shape:
        if dim < 0:
            raise CaseFormatError(f"a tensor cannot have the shape {_shown(shape)}")
        extent *= dim or 1
        if extent > MAX_ELEMENTS:  # at once: the product of hostile numbers may be huge
            raise CaseFormatError(f"shape {_shown(shape)} is over the limit of {MAX_ELEMENTS} elements")
    return 0 if 0 in shape else extent


def check_text(text: str) -> str:
    """Returns `text`; raises CaseFormatError for unpaired surrogates, which JSON can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CaseFormatError(f"text is not Unicode: {error}") from None
    return text


def _shown(shape: Tuple[int, ...]) -> str:
    """A shape for a message; huge numbers are abbreviated."""
    return "[" + ", ".join(str(dim) if abs(dim) < 1 << 64 else "…" for dim in shape) + "]"


def _string(item: object) -> str:
    """One element of a string array, which may be bytes or str."""
    if isinstance(item, bytes):
        try:
            return item.decode()
        except UnicodeDecodeError as error:
            raise CaseFormatError(f"a string is not UTF-8: {error}") from None
    if not isinstance(item, str):
        raise CaseFormatError(f"an array of objects may hold strings only, not {type(item).__name__}")
    return check_text(item)
