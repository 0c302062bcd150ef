"""Scripts for pairs of equivalent torch programs: both functions, the inputs, one comparison."""

from __future__ import annotations

import ast

from bot.reports import text
from bot.reports.campaign_view import InstalledToolchain
from bot.reports.reproducer import full_configuration, pip_command
from bot.reports.short_program import torch_input
from bot.reports.templates import render as render_template
from fuzzing.cases import EquivalentModels, EquivalentPair, TestCase, TorchProgram
from fuzzing.cases.equivalent_pair import SIDES
from fuzzing.outcomes import Outcome, Verdict

#: The call of a side by backend; `{0}` is the side.
_CALLS = {"torch": "{0}", "keras": "{0}", "inductor": 'torch.compile({0}, backend="{1}")'}


def render_pair(case: TestCase, outcome: Outcome, toolchain: InstalledToolchain) -> str:
    """The script of a failing outcome of a pair; "" if the backend or the inputs have none."""
    program = case.program
    if not isinstance(program, EquivalentPair) or isinstance(program, EquivalentModels):
        return ""
    inputs = [torch_input(given) for _, given in case.inputs]
    if outcome.backend not in _CALLS or not all(inputs):
        return ""
    definitions = _definitions(program)
    options, _ = full_configuration(outcome)
    mismatch = next(iter(outcome.evidence.mismatches), None)
    return render_template(
        "reproducers/pair.py.j2",
        pip=pip_command(toolchain, outcome.backend, "torch"),
        rule=program.rule,
        operator=text.one_line(case.provenance.operator),
        summary=text.one_line(outcome.summary),
        definitions=definitions,
        module="class Left(" in definitions,
        seeded="keras.utils.set_random_seed" if outcome.backend == "keras" else "torch.manual_seed",
        arranged="def arrange(" in definitions,
        inputs=list(zip([name for name, _ in case.inputs], inputs, strict=True)),
        calls=[_CALLS[outcome.backend].format(side, options.get("torch_backend", "")) for side in SIDES],
        compared=outcome.verdict is Verdict.WRONG_RESULT,
        rtol=mismatch.rtol if mismatch else 0.0,
        atol=mismatch.atol if mismatch else 0.0,
    )  # fmt: skip


def _definitions(program: EquivalentPair) -> str:
    """The definitions of both texts, those that both have only once; `forward` and `Model` named by side."""
    found: list[str] = []
    for side, given in zip(SIDES, program.sides, strict=True):
        assert isinstance(given, TorchProgram)
        for node in ast.parse(given.text).body:
            if ast.unparse(node) == "import torch":  # the script begins with it
                continue
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                node.name = side
            elif isinstance(node, ast.ClassDef) and node.name == "Model":
                node.name = side.capitalize()
            statement = ast.unparse(node)
            if statement not in found and not statement.startswith("SEED = "):
                found.append(statement)
    return "\n\n\n".join(found)
