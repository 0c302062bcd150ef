"""Constraint records: the documented constraints of one API's parameters, each with its sentence.

Four categories, as in DocTer: structure, dtype, shape (rank and lengths), valid value (range, enumeration).
Constraints across parameters are expressions (`expressions`). All classes are frozen and convert to plain
JSON and back.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fuzzing.errors import UsageError

#: Where a constraint was found. A convention is a rule of ours about names or about the whole library,
#: spelled out in the evidence; an override is a person's correction.
Origin = Literal["signature", "docstring", "stub", "schema", "convention", "override"]
Category = Literal["structure", "dtype", "shape", "value"]
Place = Literal["init", "call"]
Kind = Literal["positional", "keyword", "variadic"]


@dataclass(frozen=True)
class Evidence:
    """The words that a constraint was read from, and their source."""

    origin: Origin
    text: str


@dataclass(frozen=True)
class Structure:
    """The kinds of a value: any of `options`.

    "tensor", "int", "float", "bool", "complex", "str", "dtype", "none", and "list(…)", "tuple(…)" of int,
    float, bool or tensor. Anything else (a callable, a device) is kept by name but never drawn.
    """

    options: tuple[str, ...]
    evidence: Evidence


@dataclass(frozen=True)
class Dtype:
    """Element types of a tensor: any of `names`, among which "&x" is that of the parameter x."""

    names: tuple[str, ...]
    evidence: Evidence


@dataclass(frozen=True)
class Rank:
    """The number of dimensions: from `least` to `most`, both expressions; None is no bound."""

    least: str
    most: str | None
    evidence: Evidence


@dataclass(frozen=True)
class Shape:
    """The lengths of a tensor's dimensions: one of several patterns.

    A pattern is a tuple of tokens: an expression (`N`, `in_channels / groups`, `2`); `*` or `*name`, any
    number of dimensions, the same wherever the name returns; `*size`, the items of the parameter `size`.
    A pattern of the single token "same(x)", "broadcast(x)" or "broadcast(a, b)" is the shape of the
    parameter x, or one that broadcasts to it, or to (a, b).
    Symbols that are not parameters are bound once for each call. Parameters with the same number of patterns
    take the same one: (N, C) goes with (N), and (C) with ().
    """

    patterns: tuple[tuple[str, ...], ...]
    evidence: Evidence


@dataclass(frozen=True)
class Range:
    """Bounds of a number, or of every element of a list or tensor; expressions, None is no bound."""

    low: str | None
    high: str | None
    evidence: Evidence
    open_low: bool = False
    open_high: bool = False


@dataclass(frozen=True)
class Enumeration:
    """The legal values; texts, numbers, None."""

    values: tuple[str | int | float | bool | None, ...]
    evidence: Evidence


@dataclass(frozen=True)
class Length:
    """The number of items of a list or tuple: from `least` to `most`, expressions."""

    least: str
    most: str
    evidence: Evidence


@dataclass(frozen=True)
class Form:
    """A property of the whole value, by a name of `value_forms`; `of` is the parameter it refers to."""

    name: str
    evidence: Evidence
    of: str = ""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an API.

    place     init: of a class's constructor; call: of the function, method or module called
    default   Python's text of the default; None where the parameter is required
    left_out  why it is never drawn, "" if it is
    """

    name: str
    place: Place = "call"
    kind: Kind = "positional"
    default: str | None = None
    structure: Structure | None = None
    dtype: Dtype | None = None
    ndim: Rank | None = None
    shape: Shape | None = None
    range: Range | None = None
    enum: Enumeration | None = None
    length: Length | None = None
    form: Form | None = None
    left_out: str = ""

    @property
    def required(self) -> bool:
        """Whether every call gives it."""
        return self.default is None

    @property
    def options(self) -> tuple[str, ...]:
        """The structures it may have; () if unknown."""
        return self.structure.options if self.structure else ()

    @property
    def is_tensor(self) -> bool:
        """Whether a tensor, or a list of tensors, can be given."""
        return any("tensor" in option for option in self.options)

    def expressions(self) -> Iterator[str]:
        """All expressions in its constraints."""
        if self.ndim:
            yield from (text for text in (self.ndim.least, self.ndim.most) if text)
        if self.range:
            yield from (text for text in (self.range.low, self.range.high) if text)
        if self.length:
            yield from (self.length.least, self.length.most)
        if self.form and self.form.of:
            yield self.form.of
        if self.dtype:
            yield from (name[1:] for name in self.dtype.names if name.startswith("&"))
        for pattern in self.shape.patterns if self.shape else ():
            for token in pattern:
                yield from _token_expressions(token)


def _token_expressions(token: str) -> Iterator[str]:
    head, _, inside = token.partition("(")
    if head in ("same", "broadcast"):
        yield from (part.strip() for part in inside.removesuffix(")").split(",") if part.strip(" *"))
    elif token.lstrip("*"):
        yield token.lstrip("*")


@dataclass(frozen=True)
class Relation:
    """An expression over several parameters and symbols that must be true; `parameter` is to blame if not."""

    holds: str
    parameter: str
    evidence: Evidence


@dataclass(frozen=True)
class Definition:
    """The meaning of a symbol of the documented shapes: H_in is input_size."""

    symbol: str
    expression: str
    evidence: Evidence


@dataclass(frozen=True)
class Record:
    """The documentation of one API.

    api      its dotted name in the library
    version  of the library
    uninitialized  the sentence by which the call returns uninitialized memory; "" for none
    """

    api: str
    kind: Literal["function", "method", "class"]
    library: str
    version: str
    parameters: tuple[Parameter, ...]
    relations: tuple[Relation, ...] = ()
    definitions: tuple[Definition, ...] = ()
    uninitialized: str = ""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: records are cache keys."""
        return hash((self.api, self.version, self.parameters, self.relations))

    @cached_property
    def by_name(self) -> Mapping[str, Parameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.parameters}

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON, without absent fields."""
        plain: dict[str, Any] = _plain(self)
        return plain

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Record:
        """The inverse of `to_json`; raises UsageError for anything else."""
        record: Record = build(cls, obj)
        return record


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        defaults = {field.name: field.default for field in fields(value)}
        return {name: _plain(item) for name, item in found.items() if item != defaults[name]}
    return value


def build(kind: Any, obj: Any) -> Any:
    """A value of the annotated type `kind` from plain JSON; raises UsageError."""
    if get_origin(kind) in (Union, types.UnionType):
        options = [option for option in get_args(kind) if option is not type(None)]
        return None if obj is None else build(options[0], obj) if len(options) == 1 else obj
    if get_origin(kind) is tuple:
        if not isinstance(obj, (list, tuple)):
            raise UsageError(f"{obj!r} must be a list")
        return tuple(build(get_args(kind)[0], item) for item in obj)
    if get_origin(kind) is Literal:
        if obj not in get_args(kind):
            raise UsageError(f"{obj!r} must be one of {', '.join(map(repr, get_args(kind)))}")
        return obj
    if hasattr(kind, "__dataclass_fields__"):
        return _build_fields(kind, obj)
    if not isinstance(obj, kind):
        raise UsageError(f"{obj!r} must be of type {kind.__name__}")
    return obj


def _build_fields(kind: Any, obj: Any) -> Any:
    hints = get_type_hints(kind)
    known = {field.name for field in fields(kind)}
    if not isinstance(obj, Mapping) or not obj.keys() <= known:
        raise UsageError(f"{kind.__name__} has the keys {', '.join(sorted(known))}, not {obj!r}")
    try:
        return kind(**{name: build(hints[name], item) for name, item in obj.items()})
    except TypeError as error:
        raise UsageError(f"{kind.__name__}: {error}") from None
