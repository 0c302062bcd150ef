"""Scripts for pairs of equivalent programs: both programs, the inputs, one comparison."""

from __future__ import annotations

import ast
import json
import re

from bot.reports import text
from bot.reports.campaign_view import InstalledToolchain
from bot.reports.reproducer import full_configuration, pip_command
from bot.reports.reproducer_short import STANDARD_MODULES, short_blocks
from bot.reports.short_program import torch_input, value_expression
from bot.reports.templates import render as render_template
from fuzzing.cases import EquivalentModels, EquivalentPair, TestCase, TorchProgram
from fuzzing.cases.equivalent_pair import SIDES, OneSidedError
from fuzzing.outcomes import Mismatch, Outcome, Verdict

#: Modules that the text of a model or of an input may need.
_MODULES = ("base64", "onnx.numpy_helper")
#: The outputs in the text of a model's graph.
_OUTPUTS = re.compile(r"^g \(.*\) => \((.*)\)", re.MULTILINE)
#: The call of a side by backend; `{0}` is the side.
_CALLS = {"torch": "{0}", "keras": "{0}", "inductor": 'torch.compile({0}, backend="{1}")'}
#: What the programs do, though they are equal.
_BUT = {
    Verdict.WRONG_RESULT: "they give different results",
    Verdict.CRASH: "only one of them runs",
    Verdict.HANG: "only one of them ends",
    Verdict.OUT_OF_MEMORY: "one of them runs out of memory",
}


def render_pair(case: TestCase, outcome: Outcome, toolchain: InstalledToolchain, onnx_code: str = "") -> str:
    """The script of a failing outcome of a pair; "" if the backend or the inputs have none.

    onnx_code  defines both models of EquivalentModels (`fuzzing.triage.program_text`)
    """
    program = case.program
    if isinstance(program, EquivalentModels):
        return _render_models(case, program, outcome, toolchain, onnx_code)
    if not isinstance(program, EquivalentPair):
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
        but=_BUT[outcome.verdict],
        summary=_summary(outcome),
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


def _summary(outcome: Outcome) -> str:
    """The outcome's line without the class that only says that it is about a pair."""
    return text.one_line(outcome.summary).removeprefix(f"{OneSidedError.__name__}: ")


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


def _render_models(
    case: TestCase,
    program: EquivalentModels,
    outcome: Outcome,
    toolchain: InstalledToolchain,
    onnx_code: str,
) -> str:
    """Both models, each run by the statements that a script of one model has."""
    inputs = [(name, value_expression(given)) for name, given in case.inputs]
    mismatch = next(iter(outcome.evidence.mismatches), None)
    compared = outcome.verdict is Verdict.WRONG_RESULT
    if not onnx_code or not all(source for _, source in inputs) or (compared and mismatch is None):
        return ""
    options, _ = full_configuration(outcome)
    outputs = _output_names(onnx_code)
    variables = [f"x{place}" for place in range(len(inputs))]
    feeds = ", ".join(
        f"{json.dumps(name)}: {variable}" for (name, _), variable in zip(inputs, variables, strict=True)
    )
    output = mismatch.output if compared and mismatch else outputs[0]
    values = {
        "runs": True, "ran": True, "options": options, "device": outcome.device,
        "verdict": outcome.verdict.value,
        "arguments": ", ".join(variables), "tensors": variables, "feeds": f"{{{feeds}}}", "output": output,
        "place": outputs.index(output) if output in outputs else 0, "outputs": len(outputs),
        "demotes": "double" in onnx_code,
    }  # fmt: skip
    blocks = short_blocks(outcome.backend, program.frontend, values)
    if blocks is None:
        return ""
    written = onnx_code + "".join(source for _, source in inputs)
    lines = [
        *(f"import {name}" for name in _MODULES if f"{name}." in written),
        *blocks["imports"].split("\n"),
    ]
    standard = [line for line in lines if line.removeprefix("import ") in STANDARD_MODULES]
    packages = [line for line in lines if line not in standard]
    rewrites = dict.fromkeys(step["rewrite"] for step in json.loads(program.subject or "[]"))
    version = toolchain.versions.get(outcome.backend, "")
    return render_template(
        "reproducers/models.py.j2",
        pip=pip_command(toolchain, outcome.backend, program.frontend, ("onnx",)),
        rewrites=f"the rewrite{'s' if len(rewrites) > 1 else ''} {', '.join(rewrites)}" if rewrites else "",
        compiler=f"{outcome.backend} {version}".strip(),
        but=_BUT[outcome.verdict],
        summary=_summary(outcome),
        standard=sorted(standard),
        packages=packages,
        run=blocks["run"],
        code=onnx_code,
        inputs=list(zip(variables, [source for _, source in inputs], strict=True)),
        compared=compared,
        check=_check_sides(mismatch) if compared and mismatch else "",
    )


def _output_names(onnx_code: str) -> list[str]:
    """The outputs of the left model, of which `onnx_text` writes each as its type and its name."""
    found = _OUTPUTS.search(onnx_code)
    assert found is not None, onnx_code
    return [one.split(" ", 1)[1].strip('"') for one in found[1].split(", ")]


def _check_sides(mismatch: Mismatch) -> str:
    """The statement that fails where the models' outputs differ."""
    if mismatch.kind == "shape":
        return "assert got.shape == want.shape, (got.shape, want.shape)"
    if mismatch.kind == "type":
        return "assert got.dtype == want.dtype, (got.dtype, want.dtype)"
    if not mismatch.rtol and not mismatch.atol:
        return "np.testing.assert_array_equal(got, want)"
    return f"np.testing.assert_allclose(got, want, rtol={mismatch.rtol:g}, atol={mismatch.atol:g})"
