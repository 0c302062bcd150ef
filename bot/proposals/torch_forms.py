"""Programs of torch as a test defines them: a function, or a module and the call that makes it."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

from bot.errors import RefusalError
from bot.proposals.input_expressions import torch_input
from bot.proposals.regression import Regression
from fuzzing.cases import Recipe
from fuzzing.cases.argument_text import render_call
from fuzzing.cases.torch_call import TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.cases.values import Value

_REFUSED = "the program is no plain call or function of tensors: there is no short test with it"


@dataclass(frozen=True)
class TorchForm:
    """A program as source text.

    definition  `class Model(torch.nn.Module)`, "" where `make` needs none
    make        an expression for the module
    function    `def fn(…)` with the same result, "" for modules with weights
    inputs      (variable, torch expression)
    """

    definition: str
    make: str
    function: str
    inputs: tuple[tuple[str, str], ...]

    @property
    def seeded(self) -> bool:
        """Whether the module draws weights, which takes a seed."""
        return not self.function


def torch_form(regression: Regression) -> TorchForm:
    """The program of a case of torch. Raises RefusalError if it has no short form."""
    program = regression.case.program
    if isinstance(program, TorchCall):
        return _of_call(program, dict(regression.case.inputs))
    assert isinstance(program, TorchProgram)
    return _of_text(program, dict(regression.case.inputs))


def _of_call(program: TorchCall, given: dict[str, Value | Recipe]) -> TorchForm:
    if any(tensor.strides is not None or tensor.layout != "strided" for tensor in program.tensors):
        raise RefusalError(
            "the program has tensors with strides or layouts: there is no short test with them"
        )
    source = program.source()
    if "DEVICE" in source:
        raise RefusalError(_REFUSED)
    inputs = tuple((one.name, torch_input(given[one.name])) for one in program.tensors)
    names = ", ".join(name for name, _ in inputs)
    if program.init is not None:
        if render_call(program.args, program.kwargs) != names:
            raise RefusalError(_REFUSED)
        return TorchForm(
            "", f"{program.api}({render_call(program.init.args, program.init.kwargs)})", "", inputs
        )
    forward = source[source.index("    def forward(") : source.index("\n\n\ndef make()")]
    function = textwrap.dedent(forward).replace("def forward(self, ", "def fn(").replace("(self)", "()")
    return TorchForm(f"class Model(torch.nn.Module):\n{forward}", "Model()", function, inputs)


def _of_text(program: TorchProgram, given: dict[str, Value | Recipe]) -> TorchForm:
    text = program.text.strip("\n").removeprefix("import torch\n").strip("\n")
    inputs = tuple((name, torch_input(value)) for name, value in given.items())
    statements = ast.parse(text).body
    if len(statements) == 1 and isinstance(statements[0], ast.ClassDef) and statements[0].name == "Model":
        return TorchForm(text, "Model()", "", inputs)
    if len(statements) != 1 or not isinstance(function := statements[0], ast.FunctionDef):
        raise RefusalError(_REFUSED)
    names = [one.arg for one in function.args.args]
    if function.args.vararg is not None or len(names) != len(inputs):
        raise RefusalError(_REFUSED)
    named = tuple((name, source) for name, (_, source) in zip(names, inputs, strict=True))
    method = textwrap.indent(text.replace("def forward(", "def forward(self, ", 1), "    ")
    return TorchForm(
        f"class Model(torch.nn.Module):\n{method}",
        "Model()",
        text.replace("def forward(", "def fn(", 1),
        named,
    )
