"""Short scripts: the model, its inputs, the compiler's own API, one assertion.

A short script has no limits and no exit codes: a wrong result ends in an AssertionError, other failures end
as they do. `bot.reports.reproducer` renders the guarded script. Each backend and frontend has one template,
`templates/reproducers/short/BACKEND.FRONTEND.py.j2`, which extends `base.py.j2` and fills in the blocks
`imports` and `run`; `run` assigns the output to compare to `got`. If everything before its block `call` does
without inputs, a script for an ONNX model that fails there has none.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import jinja2
import numpy as np

from bot.reports import text
from bot.reports.campaign_view import InstalledToolchain
from bot.reports.reproducer import full_configuration, pip_command
from bot.reports.short_program import ShortProgram, short_program, value_expression
from bot.reports.templates import environment, render_within_limits
from bot.runners.reproducer_run import Ending
from fuzzing.cases import Recipe, Tensor, TestCase
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.compiler_messages import message_words
from fuzzing.oracles.pair_sides import raised_error
from fuzzing.outcomes import Mismatch, Outcome, Phase, Verdict

#: Longer scripts are not short; the guarded script is used instead.
MAX_LINES = 150
MAX_CHARACTERS = 8_000
#: Maximal characters of the comment about the symptom.
_WIDTH = 100
#: Modules of the standard library that scripts may import.
STANDARD_MODULES = frozenset({"base64", "os", "subprocess", "sys"})
#: Backends that call compiled torch programs with torch's tensors.
_TAKE_TENSORS = ("inductor", "tensorrt")
#: Element types of inputs that have gradients.
_FLOATING = re.compile("bfloat|complex|float")
#: Imports of a frontend's script besides the compiler.
_PACKAGES = {"onnx": ("onnx",), "torch": (), "keras": ("onnx",)}


class _Tool(NamedTuple):
    """How a script ends where a tool that it starts fails.

    error   what the script raises
    killed  the words where a signal ended the tool
    quotes  whether the exception has the tool's own message; else the tool prints a traceback of its own
    """

    error: str
    killed: str
    quotes: bool


#: Phases for which scripts start a tool, by backend.
_TOOLS = {
    ("iree", Phase.CONVERT): _Tool("CalledProcessError", "<Signals.{name}:", quotes=False),
    ("iree", Phase.COMPILE): _Tool("CompilerToolError", "Error code: -{number}\n", quotes=True),
}


@dataclass(frozen=True)
class Check:
    """How a script compares outputs.

    `want` is an expression for the reference, `assertion` the last statement.
    """

    want: str
    assertion: str


def render_short(case: TestCase, outcome: Outcome, toolchain: InstalledToolchain, onnx_code: str = "") -> str:
    """The short script of a failing outcome; "" if the case has none.

    case       with its expected outputs, if known
    onnx_code  statements that define an ONNX model (`fuzzing.triage.onnx_text`), "" for other programs
    """
    frontend = case.program.frontend
    template = _template(outcome.backend, frontend)
    if template is None:
        return ""
    runs = not (frontend == "onnx" and "call" in template.blocks and _fails_before_run(outcome))
    program = short_program(case, onnx_code, outcome.device, with_inputs=runs)
    if program is None or (frontend == "torch" and _needs_more_than_numpy(case, outcome)):
        return ""
    variables = [variable for _, variable, _ in program.inputs]
    arguments = ", ".join(variables)
    check = _check(case, outcome, arguments)
    options, _ = full_configuration(outcome)
    leaves = _leaves(case, program) if options.get("backward") == "on" else []
    if leaves and check is not None:
        whole = "backward" in template.blocks and case.comparison != "shapes"
        check = replace(check, want=check.want and "run(program)") if whole else None
    if check is None:
        return ""
    on_host = ".cpu()" if outcome.device == "CUDA" else ""
    arrays = [f"{name}{on_host}.numpy()" if frontend == "torch" else name for name in variables]
    imports = program.imports
    if "base64." in check.want and "import base64" not in imports:
        imports = ("import base64", *imports)
    if "np." in check.want + check.assertion and "import numpy as np" not in imports:
        imports = ("import numpy as np", *imports)
    values = {
        "pip": pip_command(toolchain, outcome.backend, frontend, _packages(frontend, outcome)),
        "about": _about(outcome, toolchain),
        "program": program,
        "imports": imports,
        "runs": runs,
        "ran": not _fails_before_run(outcome),
        "shapes": [value.shape for _, value in case.inputs if isinstance(value, Tensor | Recipe)],
        "arguments": arguments,
        "arrays": ", ".join(arrays),
        "tensors": arrays,
        "feeds": "{"
        + ", ".join(f"{json.dumps(name)}: {variable}" for name, variable, _ in program.inputs)
        + "}",
        "output": _output_name(case, outcome),
        "place": _place(case, outcome),
        "outputs": len(case.expected or ()),
        "want": check.want,
        "check": check.assertion,
        "symptom": _symptom(outcome),
        "options": options,
        "leaves": leaves,
        "copies": ", ".join(
            f"{f'given[{leaves.index(name)}]' if name in leaves else name}.clone()" for name in variables
        ),
        "verdict": outcome.verdict.value,
        "phase": outcome.phase.value,
        "demotes": "double" in program.code,
        "device": outcome.device,
    }
    rendered = render_within_limits(template, values)
    script = _tidy(rendered)
    fits = script.count("\n") <= MAX_LINES and len(script) <= MAX_CHARACTERS
    return script if fits and _is_python(script) else ""


def short_blocks(backend: str, frontend: str, values: Mapping[str, object]) -> dict[str, str] | None:
    """The rendered blocks `imports` and `run` of a short script; None if there is no such script.

    values  of the names in `render_short` that the blocks use
    """
    template = _template(backend, frontend)
    if template is None or not {"imports", "run"} <= template.blocks.keys():
        return None
    context = template.new_context(dict(values))
    return {name: "".join(template.blocks[name](context)).strip("\n") for name in ("imports", "run")}


def ending(outcome: Outcome) -> Ending | None:
    """How the short script ends if the bug shows; None where it does not end by itself."""
    if outcome.verdict is Verdict.WRONG_RESULT:
        return Ending("AssertionError", assertion=True)
    seen, tool = outcome.evidence, _TOOLS.get((outcome.backend, outcome.phase))
    if seen.signal and tool:
        number = signal.Signals[seen.signal].value
        return Ending(tool.error, (tool.killed.format(name=seen.signal, number=number),))
    if seen.signal:
        return Ending(seen.signal)
    if not seen.error:
        return None
    error, message = raised_error(seen.error, seen.message)
    own = error.rpartition(".")[2]
    return Ending(tool.error if tool and tool.quotes else own, message_words(message))


def _needs_more_than_numpy(case: TestCase, outcome: Outcome) -> bool:
    """Whether a compiler that is given numpy's arrays runs with element types that numpy lacks."""
    if outcome.backend in _TAKE_TENSORS or _fails_before_run(outcome):
        return False
    values = (value for _, value in (*case.inputs, *(case.expected or ())))
    return any(isinstance(value, Tensor | Recipe) and value.dtype in RAW_DTYPES for value in values)


def _fails_before_run(outcome: Outcome) -> bool:
    """Whether the model need not be called to show the bug."""
    return outcome.verdict is not Verdict.WRONG_RESULT and outcome.phase is not Phase.RUN


def _leaves(case: TestCase, program: ShortProgram) -> list[str]:
    """The variables of the inputs that have gradients."""
    dtypes = {name: value.dtype for name, value in case.inputs if isinstance(value, Tensor | Recipe)}
    return [variable for name, variable, _ in program.inputs if _FLOATING.match(dtypes.get(name, ""))]


def _template(backend: str, frontend: str) -> jinja2.Template | None:
    try:
        return environment().get_template(f"reproducers/short/{backend}.{frontend}.py.j2")
    except jinja2.TemplateNotFound:
        return None


def _packages(frontend: str, outcome: Outcome) -> tuple[str, ...]:
    runner = ("polygraphy",) if outcome.backend == "tensorrt" and frontend == "onnx" else ()
    return (*_PACKAGES.get(frontend, ()), *runner)


def _about(outcome: Outcome, toolchain: InstalledToolchain) -> str:
    """The second line of a script: the failing compiler and phase."""
    version = toolchain.versions.get(outcome.backend) or next(iter(toolchain.versions.values()), "")
    device = "" if outcome.device == "CPU" else f" on {outcome.device}"
    verb = {Phase.IMPORT: "be imported", Phase.CONVERT: "convert", Phase.COMPILE: "compile", Phase.RUN: "run"}
    to = f"{verb[outcome.phase]} this program"
    what = {
        Verdict.CRASH: f"fails to {to}",
        Verdict.HANG: "hangs",
        Verdict.WRONG_RESULT: "gives a wrong result",
        Verdict.OUT_OF_MEMORY: "runs out of memory",
    }[outcome.verdict]
    return f"{outcome.backend} {version}{device} {what}"


def _symptom(outcome: Outcome) -> str:
    """The comment above the call."""
    phase = f"({outcome.phase.value})"
    summary = text.one_line(outcome.summary).partition(" (in ")[0].partition(" (allowed: ")[0]
    if outcome.verdict is Verdict.HANG:
        return f"Does not return {phase}."
    if outcome.verdict is Verdict.OUT_OF_MEMORY:
        return f"Runs out of memory {phase}."
    tool = _TOOLS.get((outcome.backend, outcome.phase))
    if outcome.evidence.signal:
        died = f"dies of {text.one_line(outcome.evidence.signal)} {phase}"
        return f"The tool {died}: {tool.error}." if tool else f"The process {died}."
    raised = outcome.verdict is Verdict.CRASH and outcome.evidence.error
    if raised and tool and tool.quotes:  # what the script itself raises, and not our own class
        summary = f"{tool.error}: {summary.partition(': ')[2]}"
    return text.cut(f"{'Raises ' if raised else ''}{summary}", _WIDTH)


def _output_name(case: TestCase, outcome: Outcome) -> str:
    if case.program.frontend != "onnx" or outcome.verdict is not Verdict.WRONG_RESULT:
        return ""
    return _mismatch(outcome).output if outcome.evidence.mismatches else ""


def _mismatch(outcome: Outcome) -> Mismatch:
    return outcome.evidence.mismatches[0]


def _place(case: TestCase, outcome: Outcome) -> int:
    """The position of the output to compare; the first for crashes."""
    if outcome.verdict is not Verdict.WRONG_RESULT or not outcome.evidence.mismatches:
        return 0
    name = _mismatch(outcome).output
    names = [output for output, _ in case.expected or ()]
    return names.index(name) if name in names else int(name) if name.isdecimal() else 0


def _check(case: TestCase, outcome: Outcome, arguments: str) -> Check | None:
    if outcome.verdict is not Verdict.WRONG_RESULT:
        return Check("", "")
    if not outcome.evidence.mismatches:
        return None
    mismatch = _mismatch(outcome)
    if case.program.frontend == "torch":
        return _check_torch(case, outcome, mismatch, arguments)
    if case.program.frontend == "keras":
        outputs = f"keras.tree.flatten(program([{arguments}], training=False))"
        want = f"keras.ops.convert_to_numpy({outputs}[{_place(case, outcome)}])"
        return _check_arrays(mismatch, want, "want")
    reference = dict(case.expected or ()).get(mismatch.output)
    return _check_array(reference, mismatch) if isinstance(reference, Tensor) else None


def _check_array(want: Tensor, mismatch: Mismatch) -> Check | None:
    """Compares one array with the value that ONNX expects."""
    array = want.array()
    if mismatch.kind == "shape":
        return Check("", f"assert got.shape == {array.shape}, got.shape")
    if mismatch.kind == "type" and mismatch.detail.startswith("a sequence"):
        return None  # of which the script would take an item
    if mismatch.kind == "type" and array.dtype != object:
        return Check("", f'assert got.dtype == "{array.dtype.name}", got.dtype')
    bounds = f", rtol={mismatch.rtol:g}, atol={mismatch.atol:g}"
    exact = array.dtype.kind not in "fc" or (not mismatch.rtol and not mismatch.atol)
    compare = "np.testing.assert_array_equal" if exact else "np.testing.assert_allclose"
    expression = value_expression(want)
    if expression and "base64" not in expression:
        return Check(expression, f"{compare}(got, want{'' if exact else bounds})")
    if mismatch.worst and len(mismatch.worst) == array.ndim:
        index = ", ".join(map(str, mismatch.worst))
        worst = value_expression(Tensor.of(np.asarray(array[mismatch.worst]), want.dtype))
        if worst:
            return Check("", f"{compare}(got[{index}], {worst}{'' if exact else bounds})")
    return Check(expression, f"{compare}(got, want{'' if exact else bounds})") if expression else None


def _check_torch(case: TestCase, outcome: Outcome, mismatch: Mismatch, arguments: str) -> Check:
    if outcome.backend in _TAKE_TENSORS:
        if case.comparison == "shapes":
            return Check(f"program({arguments})", "assert got.shape == want.shape, (got.shape, want.shape)")
        bounds = f"rtol={mismatch.rtol:g}, atol={mismatch.atol:g}, equal_nan=True"
        return Check(f"program({arguments})", f"torch.testing.assert_close(got, want, {bounds})")
    outputs = f"torch.utils._pytree.tree_leaves(program({arguments}))"
    return _check_arrays(mismatch, f"{outputs}[{_place(case, outcome)}]", "want.numpy()")


def _check_arrays(mismatch: Mismatch, want: str, array: str) -> Check:
    """Compares with the output of the program's own library; `array` is `want` as a numpy array."""
    if mismatch.kind == "shape":
        return Check(want, "assert got.shape == tuple(want.shape), (got.shape, want.shape)")
    if mismatch.kind == "type":
        return Check(want, f"assert got.dtype == {array}.dtype, (got.dtype, want.dtype)")
    bounds = f"rtol={mismatch.rtol:g}, atol={mismatch.atol:g}"
    return Check(want, f"np.testing.assert_allclose(got, {array}, {bounds})")


def _is_python(script: str) -> bool:
    try:
        compile(script, "short.py", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _tidy(script: str) -> str:
    """The script with sorted imports and Python's blank lines, except after the symptom."""
    lines = [line.rstrip() for line in script.strip("\n").split("\n")]
    symptom = max(at for at, line in enumerate(lines) if line.startswith("# "))
    start = next(at for at, line in enumerate(lines) if line and not line.startswith(("#", "import", "from")))
    imports = sorted({line for line in lines[:start] if line.startswith(("import", "from"))}, key=_module)
    own = [line for line in imports if _module(line) in STANDARD_MODULES]
    packages = [line for line in imports if line not in own]
    gap = [""] * (2 if lines[start].startswith(("class ", "def ", "@")) else 1)
    comments = [line for line in lines[:start] if line.startswith("#")]
    head = [*comments, *own, *([""] if own else []), *packages, *gap]
    body = lines[start:symptom]
    kept = [line for at, line in enumerate(body) if line or body[at - 2 : at] != ["", ""]]
    return "\n".join([*head, *kept, *filter(None, lines[symptom:])]) + "\n"


def _module(line: str) -> str:
    return line.split()[1]
