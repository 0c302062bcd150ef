"""Reads typed arguments of a call from the JSON that `arguments` writes. The JSON is untrusted."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Tuple

from fuzzing.cases.arguments import (
    MAX_DEPTH,
    Argument,
    Device,
    Dtype,
    Kwargs,
    Layout,
    MemoryFormat,
    Name,
    NewObject,
    TensorArg,
    TensorLiteral,
    check_name,
    sorted_kwargs,
    whole_number,
)
from fuzzing.cases.values import check_text
from fuzzing.errors import CaseFormatError


def argument_from_json(obj: Any, depth: int = 0) -> Argument:
    """The inverse of `argument_to_json`; raises CaseFormatError for anything else."""
    if depth > MAX_DEPTH:
        raise CaseFormatError(f"arguments nest deeper than {MAX_DEPTH} levels")
    if obj is None or isinstance(obj, (bool, str, float)):
        return check_text(obj) if isinstance(obj, str) else obj
    if isinstance(obj, int):
        return whole_number(obj)
    if isinstance(obj, list):
        return [argument_from_json(item, depth + 1) for item in obj]
    if isinstance(obj, dict):
        for tag, read in _READERS.items():
            if tag in obj:
                return read(obj, depth + 1)
    raise CaseFormatError(f"an argument has no known tag: {sorted(map(str, obj))[:5]}")


def kwargs_from_json(obj: Any, depth: int = 0) -> Kwargs:
    """The inverse of `kwargs_to_json`; raises CaseFormatError."""
    if not isinstance(obj, dict):
        raise CaseFormatError("keyword arguments must be an object")
    return sorted_kwargs({name: argument_from_json(value, depth) for name, value in obj.items()})


def list_from_json(obj: Any, depth: int = 0) -> Tuple[Argument, ...]:
    """Arguments in order; raises CaseFormatError."""
    if not isinstance(obj, list):
        raise CaseFormatError("arguments must be a list")
    return tuple(argument_from_json(item, depth) for item in obj)


def integers_from_json(obj: Any, what: str) -> Tuple[int, ...]:
    """A list of integers; raises CaseFormatError."""
    if not isinstance(obj, list) or not all(type(item) is int for item in obj):
        raise CaseFormatError(f"{what} must be a list of whole numbers")
    return tuple(obj)


def _only(obj: Dict[str, Any], key: str, kind: type) -> Any:
    if obj.keys() != {key} or type(obj[key]) is not kind:
        raise CaseFormatError(f"{{{key!r}: …}} must hold a {kind.__name__} and nothing else")
    return obj[key]


_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _real_from_json(obj: Any) -> float:
    """A finite float as a number, others as {"float": "nan"}."""
    if type(obj) is float:
        return obj
    text = _only(obj, "float", str) if isinstance(obj, dict) else ""
    if text not in _NOT_FINITE:
        raise CaseFormatError(f"{text!r} must be one of {', '.join(_NOT_FINITE)}")
    return _NOT_FINITE[text]


def _complex_from_json(obj: Dict[str, Any], _: int) -> complex:
    parts = _only(obj, "complex", list)
    if len(parts) != 2:
        raise CaseFormatError("a complex number has two parts")
    return complex(*(_real_from_json(part) for part in parts))


def _dict_from_json(obj: Dict[str, Any], depth: int) -> Dict[str, Argument]:
    items = _only(obj, "dict", list)
    if not all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in items):
        raise CaseFormatError("a dict is a list of pairs of a text and an argument")
    found = {check_text(key): argument_from_json(value, depth) for key, value in items}
    if len(found) != len(items):
        raise CaseFormatError("a dict has a key twice")
    return found


def _slice_from_json(obj: Dict[str, Any], depth: int) -> slice:
    parts = _only(obj, "slice", list)
    if len(parts) != 3:
        raise CaseFormatError("a slice has three parts")
    return slice(*(argument_from_json(part, depth) for part in parts))


def _ellipsis_from_json(obj: Dict[str, Any], _: int) -> Any:
    if not _only(obj, "ellipsis", bool):
        raise CaseFormatError('an ellipsis is {"ellipsis": true}')
    return Ellipsis


def _tensor_from_json(obj: Dict[str, Any], _: int) -> TensorArg:
    if not obj.keys() <= {"tensor", "strides", "offset", "layout", "dtype", "shape"}:
        raise CaseFormatError(f"a tensor argument cannot have the keys {sorted(map(str, obj))}")
    strides, offset, shape = obj.get("strides"), obj.get("offset", 0), obj.get("shape")
    if type(offset) is not int:
        raise CaseFormatError("a tensor's offset must be a whole number")
    dtype, layout = obj.get("dtype"), obj.get("layout", "strided")
    if not isinstance(layout, str) or not (dtype is None or isinstance(dtype, str)):
        raise CaseFormatError("a tensor's dtype and layout must be texts")
    return TensorArg(
        check_name(obj["tensor"]),
        None if strides is None else integers_from_json(strides, "strides"),
        offset,
        layout,
        dtype,
        None if shape is None else integers_from_json(shape, "a shape"),
    )


def _literal_from_json(obj: Dict[str, Any], depth: int) -> TensorLiteral:
    if obj.keys() != {"literal", "dtype", "shape"} or not isinstance(obj["dtype"], str):
        raise CaseFormatError("a literal tensor needs literal, dtype and shape")
    shape = integers_from_json(obj["shape"], "a shape")
    return TensorLiteral(obj["dtype"], shape, list_from_json(obj["literal"], depth))


def _new_from_json(obj: Dict[str, Any], depth: int) -> NewObject:
    if obj.keys() != {"new", "args", "kwargs"}:
        raise CaseFormatError("a new object needs new, args and kwargs")
    return NewObject(obj["new"], list_from_json(obj["args"], depth), kwargs_from_json(obj["kwargs"], depth))


def _reader_of(tag: str, kind: Callable[[str], Any]) -> Callable[[Dict[str, Any], int], Any]:
    return lambda obj, _: kind(_only(obj, tag, str))


#: By tag. Tags that allow further keys come first: a tensor may have a dtype and a layout.
_READERS: Dict[str, Callable[[Dict[str, Any], int], Any]] = {
    "tensor": _tensor_from_json,
    "literal": _literal_from_json,
    "new": _new_from_json,
    "tuple": lambda obj, depth: tuple(argument_from_json(item, depth) for item in _only(obj, "tuple", list)),
    "float": lambda obj, _: _real_from_json(obj),
    "complex": _complex_from_json,
    "dict": _dict_from_json,
    "slice": _slice_from_json,
    "ellipsis": _ellipsis_from_json,
    "dtype": _reader_of("dtype", Dtype),
    "layout": _reader_of("layout", Layout),
    "memory_format": _reader_of("memory_format", MemoryFormat),
    "device": _reader_of("device", Device),
    "name": _reader_of("name", Name),
}
