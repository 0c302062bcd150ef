"""Subjects: what a rule rewrites, a call of one API with its inputs, and the text of programs around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from fuzzing.cases import Argument, Recipe, Tensor, TensorArg, TestCase, TorchCall, source_templates
from fuzzing.cases.argument_text import render, render_call
from fuzzing.cases.arguments import TensorLiteral
from fuzzing.errors import InternalError

#: Names of a call's values by API, where the signature that Python shows has none.
Parameters = Sequence[str]


class Subject:
    """A case whose program is a TorchCall."""

    def __init__(self, case: TestCase) -> None:
        if not isinstance(case.program, TorchCall):
            raise InternalError(f"a rule was given a {case.program.kind}")
        self.case, self.call = case, case.program

    @property
    def api(self) -> str:
        """The API's dotted name."""
        return self.call.api

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order of the program's parameters."""
        return tuple(tensor.name for tensor in self.call.tensors)

    @cached_property
    def tensors(self) -> Mapping[str, Recipe | Tensor]:
        """The inputs that are tensors, by name."""
        return {name: given for name, given in self.case.inputs if isinstance(given, (Recipe, Tensor))}

    @property
    def writable(self) -> bool:
        """Whether `program` can express the call: literal tensors of a module are lost."""
        init = self.call.init
        literals = init is not None and any(
            isinstance(value, TensorLiteral) for value in (*init.args, *dict(init.kwargs).values())
        )
        return not literals and "DEVICE" not in self.call.source()

    def bind(self, parameters: Parameters) -> dict[str, Argument] | None:
        """The call's values by parameter; None if it has others."""
        if len(self.call.args) > len(parameters) or not set(dict(self.call.kwargs)) <= set(parameters):
            return None
        return {**dict(zip(parameters, self.call.args, strict=False)), **dict(self.call.kwargs)}

    def shape(self, argument: Argument) -> tuple[int, ...]:
        """The shape of a tensor argument; () for anything else."""
        return self.tensors[argument.name].shape if isinstance(argument, TensorArg) else ()

    @cached_property
    def expression(self) -> str:
        """The call in Python; a module is `self.layer`."""
        return self.call.expression()

    @property
    def layer(self) -> str:
        """The expression that makes the module; "" for a function."""
        init = self.call.init
        return "" if init is None else f"{self.api}({render_call(init.args, init.kwargs)})"

    def program(self, result: str = "", setup: Sequence[str] = (), helpers: str = "") -> str:
        """The text of a program with the subject's inputs.

        result   the expression it returns, by default the call
        setup    statements before it
        helpers  definitions outside the function
        """
        body = [*setup, f"return {result or self.expression}"]
        return f"import torch\n{self._strides()}{helpers}{self._function(body)}{self._arrange()}"

    def _strides(self) -> str:
        strided = any(tensor.strides is not None for tensor in self.call.tensors)
        return f"\n{source_templates.RESTRIDE}" if strided else ""

    def _function(self, body: Sequence[str]) -> str:
        if not self.layer:
            lines = "".join(f"    {line}\n" for line in _lines(body))
            return f"\n\ndef forward({', '.join(self.names)}):\n{lines}"
        lines = "".join(f"        {line}\n" for line in _lines(body))
        made = f"        super().__init__()\n        self.layer = {self.layer}\n"
        return (
            f"\nSEED = {self.call.seed}\n\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n{made}\n"
            f"    def forward({', '.join(['self', *self.names])}):\n{lines}"
        )

    def _arrange(self) -> str:
        plain = all(tensor.strides is None and tensor.layout == "strided" for tensor in self.call.tensors)
        ordered = [name for name, _ in self.case.inputs] == list(self.names)
        return "" if plain and ordered else "\n" + source_templates.arrange(self.call.tensors)


def _lines(statements: Sequence[str]) -> list[str]:
    return [line for statement in statements for line in statement.split("\n")]


def text(argument: Argument) -> str:
    """An argument in Python."""
    return render(argument)
