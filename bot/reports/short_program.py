"""Programs of short scripts, as idiomatic statements for each program kind."""

from __future__ import annotations

import keyword
from dataclasses import dataclass

import numpy as np

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase
from fuzzing.cases.argument_text import render_call
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.cases.torch_call import TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.cases.values import RAW_DTYPES, Absent, Sequence, Value
from fuzzing.triage.tensor_text import bytes_expression, numpy_expression, torch_expression

#: Names reserved by the templates.
_TAKEN = frozenset(
    [
        "np",
        "onnx",
        "torch",
        "keras",
        "os",
        "base64",
        "model",
        "program",
        "session",
        "got",
        "want",
        "result",
        "compiled",
        "module",
        "machine",
        "tree_leaves",
        "onnxruntime",
        "openvino",
        "tvm",
        "iree",
        "tensorrt",
        "tinygrad",
        "Tensor",
        "OnnxRunner",
        "polygraphy",
        "runner",
        "from_onnx",
        "from_exported_program",
    ]
)


@dataclass(frozen=True)
class ShortProgram:
    """A program and its inputs as statements.

    imports   import statements for the other statements
    code      defines `model` (an onnx.ModelProto) or `program` (a callable torch or keras module)
    inputs    (name of the input, Python variable, expression)
    """

    imports: tuple[str, ...]
    code: str
    inputs: tuple[tuple[str, str, str], ...]


def short_program(
    case: TestCase, onnx_code: str, device: str, *, with_inputs: bool = True
) -> ShortProgram | None:
    """The program of a case in few lines; None if it has no such form.

    onnx_code    output of `fuzzing.triage.onnx_text` for an ONNX model
    with_inputs  False for an ONNX model that the script does not run
    """
    program = case.program
    imports: tuple[str, ...]
    if isinstance(program, OnnxModel):
        code, imports = onnx_code, ("import onnx.parser",)
    elif isinstance(program, TorchCall):
        code, imports = _torch_call(program), ("import torch",)
    elif isinstance(program, TorchProgram):
        code, imports = _torch_program(program), ("import torch",)
    elif isinstance(program, KerasLayer):
        code, imports = _keras_layer(program), ("import os", "import numpy as np")
    else:
        return None
    inputs = _inputs(case, device if program.frontend == "torch" else "") if with_inputs else ()
    if not code or inputs is None:
        return None
    if program.frontend == "torch" and device == "CUDA":
        code += "\nprogram.cuda()"
    text = code + "".join(source for _, _, source in inputs)
    if program.frontend != "keras" and "np." in text:
        imports = ("import numpy as np", *imports)
    if "base64." in text:
        imports = ("import base64", *imports)
    if "onnx.numpy_helper" in text:
        imports = (*imports, "import onnx.numpy_helper")
    return ShortProgram(imports, code, inputs)


def _inputs(case: TestCase, torch_device: str) -> tuple[tuple[str, str, str], ...] | None:
    names = [name for name, _ in case.inputs]
    if isinstance(case.program, TorchCall):
        names = [tensor.name for tensor in case.program.tensors]
    given = dict(case.inputs)
    rows: list[tuple[str, str, str]] = []
    for at, name in enumerate(names):
        source = torch_input(given[name]) if torch_device else value_expression(given[name])
        if not source:
            return None
        moved = ".cuda()" if torch_device == "CUDA" else ""
        rows.append((name, _variable(name, at), source + moved))
    return tuple(rows)


def _variable(name: str, at: int) -> str:
    fit = name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and name not in _TAKEN
    return name if fit else f"x{at}"


def value_expression(given: Value | Recipe) -> str:
    """A numpy expression for a value, "" if there is no short one."""
    if isinstance(given, Recipe):
        drawn = given.draw().array()
        return numpy_expression(drawn) or _drawing(given) or bytes_expression(drawn)
    if isinstance(given, Sequence):
        items = [value_expression(item) for item in given.items]
        return f"[{', '.join(items)}]" if all(items) else ""
    if isinstance(given, Absent):
        return "None"
    if given.dtype in RAW_DTYPES:
        return ""
    return numpy_expression(given.array()) or bytes_expression(given.array())


def _drawing(recipe: Recipe) -> str:
    """An expression that draws the recipe's numbers with numpy's generator, bit for bit."""
    if recipe.kind != "uniform":
        return ""
    count = int(np.prod(recipe.shape, dtype=np.int64))
    span = recipe.high - recipe.low
    unit = f"(np.random.PCG64({recipe.seed}).random_raw({count}) >> np.uint64(11)) * 2.0**-53"
    return f"({recipe.low:g} + {unit} * {span:g}).astype(np.{recipe.dtype}).reshape({recipe.shape})"


def torch_input(given: Value | Recipe) -> str:
    """A torch expression for a value, "" if there is none."""
    value = given.draw() if isinstance(given, Recipe) else given
    if not isinstance(value, Tensor):
        return ""
    if value.dtype == "bfloat16":
        bits = value.array().astype(np.uint32) << np.uint32(16)
        source = torch_expression(bits.view(np.float32))
        return f"{source}.to(torch.bfloat16)" if source else ""
    if value.dtype in RAW_DTYPES or value.array().dtype == object:
        return ""
    drawing = _drawing(given) if isinstance(given, Recipe) else ""
    rest = drawing or bytes_expression(value.array())
    return torch_expression(value.array()) or (f"torch.from_numpy({rest})" if rest else "")


def _torch_call(program: TorchCall) -> str:
    if any(tensor.strides is not None or tensor.layout != "strided" for tensor in program.tensors):
        return ""
    source = program.source()
    forward = source[source.index("    def forward(") : source.index("\n\n\ndef make()")]
    if "DEVICE" in source:
        return ""
    if program.init is not None:
        init = render_call(program.init.args, program.init.kwargs)
        plain = [tensor.name for tensor in program.tensors]
        call = render_call(program.args, program.kwargs)
        if call == ", ".join(plain):
            return f"torch.manual_seed(0)\nprogram = {program.api}({init}).eval().requires_grad_(False)"
        return ""
    return f"class Program(torch.nn.Module):\n{forward}\n\n\nprogram = Program()"


def _torch_program(program: TorchProgram) -> str:
    source = program.source()
    text = program.text.strip("\n").removeprefix("import torch\n").strip("\n")
    if "def arrange(" in program.text or text.startswith(("import ", "from ")):
        return ""
    if "class Model(" in text and "fill(Model()" in source:
        return f"{text}\n\n\ntorch.manual_seed(0)\nprogram = Model().eval().requires_grad_(False)"
    wrapper = "class Program(torch.nn.Module):\n    forward = staticmethod(forward)"
    return f"{text}\n\n\n{wrapper}\n\n\nprogram = Program()"


def _keras_layer(program: KerasLayer) -> str:
    source = program.source()
    body = source[source.index("def make():\n") + len("def make():\n") : source.index("    return fill(")]
    lines = [line.removeprefix("    ") for line in body.strip("\n").split("\n")]
    code = "\n".join(lines).replace("model = keras.Model(", "program = keras.Model(")
    setup = (
        'os.environ["KERAS_BACKEND"] = "torch"\nimport keras  # noqa: E402\n\nkeras.utils.set_random_seed(0)'
    )
    return f"{setup}\n{code}"
