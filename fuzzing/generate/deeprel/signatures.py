"""Signatures of APIs, and calls bound to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuzzing.cases import (
    Argument,
    Device,
    Dtype,
    Layout,
    MemoryFormat,
    Name,
    NewObject,
    TensorArg,
    TensorLiteral,
)

#: A parameter of which nothing is known takes anything.
ANY = "any"

#: What else a parameter of a type takes: torch widens numbers, Python's bool is an int, and "cpu" a device.
_TAKES = {
    "int": frozenset({"bool"}),
    "float": frozenset({"bool", "int"}),
    "complex": frozenset({"bool", "int", "float"}),
    "floats": frozenset({"ints"}),
    "device": frozenset({"str"}),
}
#: NumPy's spellings, which torch's argument parser takes too (torch/csrc/utils/python_arg_parser.cpp).
_SPELLINGS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of an API.

    types     what it takes: tensor, int, float, complex, bool, str, tensors, ints, floats, bools, dtype,
              layout, memory_format, device, function, none; or ANY
    optional  it has a default
    keyword   it cannot be given by position
    rest      it takes all remaining positional arguments, as `*tensors` does
    """

    name: str
    types: frozenset[str]
    optional: bool = False
    keyword: bool = False
    variadic: bool = False

    def accepts(self, argument: Argument) -> bool:
        """Whether an argument is of one of its types; for `rest`, whether it is several."""
        if self.variadic:
            return isinstance(argument, (list, tuple))
        if ANY in self.types:
            return True
        kinds = argument_types(argument)
        return any(
            kind in self.types or any(kind in _TAKES.get(name, ()) for name in self.types) for kind in kinds
        )


@dataclass(frozen=True)
class Signature:
    """One way to call an API: its parameters in order. Of a method the first is the tensor."""

    parameters: tuple[Parameter, ...]

    def named(self, name: str) -> Parameter | None:
        """The parameter of this name."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def bind(self, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> dict[str, Argument] | None:
        """The arguments by parameter, in the order of the parameters; None if they do not fit."""
        bound = self._positional(list(args))
        if bound is None:
            return None
        for name, value in kwargs.items():
            own = name if self.named(name) else _SPELLINGS.get(name, name)
            if self.named(own) is None or own in bound:
                return None
            bound[own] = value
        for parameter in self.parameters:
            if parameter.name not in bound:
                if not parameter.optional:
                    return None
            elif not parameter.accepts(bound[parameter.name]):
                return None
        return {item.name: bound[item.name] for item in self.parameters if item.name in bound}

    def _positional(self, args: list[Argument]) -> dict[str, Argument] | None:
        bound: dict[str, Argument] = {}
        for place, parameter in enumerate(self.parameters):
            if parameter.variadic:
                bound[parameter.name] = tuple(args[place:])
                return bound
            if place >= len(args):
                return bound
            if parameter.keyword:
                return None
            variadic = args[place:]
            if all(parameter.keyword for parameter in self.parameters[place + 1 :]) and _is_unpacked_list(
                parameter, variadic
            ):  # x.permute(0, 2, 1)
                bound[parameter.name] = tuple(variadic)
                return bound
            bound[parameter.name] = args[place]
        return bound if len(args) <= len(self.parameters) else None

    def unbind(
        self, bound: Mapping[str, Argument]
    ) -> tuple[tuple[Argument, ...], tuple[tuple[str, Argument], ...]]:
        """The inverse of `bind`: by position until a parameter is omitted, then by keyword."""
        args: list[Argument] = []
        kwargs: list[tuple[str, Argument]] = []
        gap = False
        for parameter in self.parameters:
            if parameter.name not in bound:
                gap = True
            elif parameter.variadic:
                args.extend(bound[parameter.name])
            elif gap or parameter.keyword:
                kwargs.append((parameter.name, bound[parameter.name]))
            else:
                args.append(bound[parameter.name])
        return tuple(args), tuple(kwargs)


def _is_unpacked_list(parameter: Parameter, values: Sequence[Argument]) -> bool:
    """Whether these are the items of one list; a single number is, where no number is accepted."""
    whole = all(type(value) is int for value in values)
    return whole and "ints" in parameter.types and (len(values) > 1 or not parameter.types & {"int", ANY})


def argument_types(argument: Argument) -> frozenset[str]:
    """The types of an argument; several only for an empty list."""
    for form, name in _FORMS:
        if type(argument) is form:
            return frozenset({name})
    if isinstance(argument, (list, tuple)):
        return _item_types(argument)
    return frozenset()


_FORMS: tuple[tuple[type, str], ...] = (
    (TensorArg, "tensor"),
    (TensorLiteral, "tensor"),
    (NewObject, "function"),  # a module made on the spot, to be called
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (complex, "complex"),
    (str, "str"),
    (type(None), "none"),
    (Dtype, "dtype"),
    (Layout, "layout"),
    (MemoryFormat, "memory_format"),
    (Device, "device"),
    (Name, "function"),
)


def _item_types(items: Sequence[Argument]) -> frozenset[str]:
    if not items:
        return frozenset({"ints", "floats", "bools", "tensors"})
    kinds = {kind for item in items for kind in argument_types(item)} - {"none"} or {
        "int"
    }  # sizes may be None
    for single, several in (("tensor", "tensors"), ("bool", "bools"), ("int", "ints")):
        if kinds == {single}:
            return frozenset({several})
    return frozenset({"floats"}) if kinds and kinds <= {"int", "float"} else frozenset()
