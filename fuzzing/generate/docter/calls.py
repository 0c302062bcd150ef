"""Calls: an API with values for some of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fuzzing.cases import Argument, Init, Input, Provenance, Recipe, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.cases.arguments import check_name
from fuzzing.errors import CaseFormatError
from fuzzing.generate.docter.phrase_patterns import parse_literal
from fuzzing.generate.docter.record import Place, Record

#: What stands for a tensor in a call: how to draw it, or its elements.
Drawn = Recipe | Tensor


@dataclass(frozen=True)
class Call:
    """Values of an API's parameters.

    arguments  by parameter, in the API's order: Python values and Dtype as in cases; a tensor is a Recipe or
               a Tensor, alone or in a list
    """

    record: Record
    arguments: Mapping[str, Any]

    def scope(self) -> dict[str, Any]:
        """The values expressions may use: arguments, and the defaults of omitted parameters."""
        found: dict[str, Any] = {}
        for parameter in self.record.parameters:
            if parameter.name in self.arguments:
                found[parameter.name] = self.arguments[parameter.name]
            elif (default := parse_literal(parameter.default)) is not None and default is not ...:
                found[parameter.name] = default
        return found

    def program(self) -> tuple[TorchCall, tuple[tuple[str, Input], ...]]:
        """The call as a program, and its inputs. Raises CaseFormatError for values a case cannot hold."""
        inputs = _Inputs()
        init_args, init_kwargs = self._positional_arguments("init", inputs)
        args, kwargs = self._positional_arguments("call", inputs)
        init = Init(init_args, tuple(init_kwargs.items())) if self.record.kind == "class" else None
        return TorchCall(self.record.api, args, tuple(kwargs.items()), init), tuple(inputs.named.items())

    def case(self, provenance: Provenance) -> TestCase:
        """The call as a case. Raises CaseFormatError."""
        program, inputs = self.program()
        return TestCase(program, inputs, provenance)

    def _positional_arguments(
        self, place: Place, inputs: _Inputs
    ) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
        """The required positional ones up to the first omitted; the rest go by keyword, since
        docstrings misplace optional parameters more often than they misname them.
        """
        args: list[Argument] = []
        kwargs: dict[str, Argument] = {}
        gap = False
        for parameter in self.record.parameters:
            if parameter.place != place:
                continue
            if parameter.name not in self.arguments:
                gap = gap or parameter.kind == "positional"
            elif parameter.kind == "variadic":
                args.extend(inputs.argument(self.arguments[parameter.name], parameter.name))
            elif gap or not parameter.required or parameter.kind == "keyword":
                kwargs[parameter.name] = inputs.argument(self.arguments[parameter.name], parameter.name)
            else:
                args.append(inputs.argument(self.arguments[parameter.name], parameter.name))
        return tuple(args), kwargs


class _Inputs:
    def __init__(self) -> None:
        self.named: dict[str, Input] = {}

    def argument(self, value: Any, name: str) -> Argument:
        if isinstance(value, (Recipe, Tensor)):
            free = self._unused_name(name)
            self.named[free] = value
            return TensorArg(free)
        if isinstance(value, (list, tuple)):
            return type(value)(self.argument(item, name) for item in value)
        return value

    def _unused_name(self, name: str) -> str:
        try:
            check_name(name)
        except CaseFormatError:
            name = f"{name}_"
        return next(
            free for free in (name, *(f"{name}{n}" for n in range(1, 1000))) if free not in self.named
        )


def list_tensors(value: Any) -> Iterator[Drawn]:
    """The tensors of an argument: itself, or those in a list."""
    if isinstance(value, (Recipe, Tensor)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from list_tensors(item)
