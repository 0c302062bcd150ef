"""Ways to optimize a torch module, as text that a pair's right program holds.

Each defines `optimized(call, inputs)`, the flat outputs of the optimized module. What an optimizer says it
cannot capture or lacks is raised as NotImplementedError, which is no inequality.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Optimizer:
    """What the equality is with, for people, and the text."""

    description: str
    text: str


def capturing(description: str, capture: str, run: str) -> Optimizer:
    """An optimizer whose capture may refuse; both texts are statements that `optimized` runs.

    capture  from `call` and `inputs`
    run      from what `capture` defines; returns the outputs
    """
    text = f'''

def optimized(call, inputs):
    try:
        {capture.replace(chr(10), chr(10) + "        ")}
    except Exception as error:
        raise NotImplementedError(f"{description} cannot capture it: {{error}}".split("\\n")[0]) from None
    {run.replace(chr(10), chr(10) + "    ")}
'''
    return Optimizer(description, text)


#: Captures `program`.
EXPORT = "program = torch.export.export(call, inputs)"
_ONNX = (
    "import contextlib, io\n"
    "with contextlib.redirect_stdout(io.StringIO()):\n"
    "    program = torch.onnx.export(call, inputs, dynamo=True, verbose=False).model_proto"
)
#: The element types of what the call takes and returns.
_TYPES = """results = call(*[tensor.clone() for tensor in inputs])
given = [*inputs, *torch.utils._pytree.tree_leaves(results)]
types = {tensor.dtype for tensor in given if isinstance(tensor, torch.Tensor)}"""
#: ONNX has next to no operators of complex numbers, and torch exports them as pairs of reals. The tensors of
#: OpenVINO and TVM have no complex types.
_REAL = """if any(dtype.is_complex for dtype in types):
    raise TypeError("complex numbers are exported as reals")"""
#: OpenVINO's CPU computes float64 in float32, as its backend declares too (`Backend.computed_in`).
_NARROWS = """if torch.float64 in types:
    raise TypeError("float64 is computed in float32")"""
_ARRAYS = "arrays = [tensor.numpy() for tensor in inputs]"

OPTIMIZERS: Mapping[str, Optimizer] = {
    "compile": Optimizer(
        "torch.compile",
        """

def optimized(call, inputs):
    torch.compiler.reset()
    return torch.compile(call)(*inputs)
""",
    ),
    "script": capturing("torch.jit.script", "script = torch.jit.script(call)", "return script(*inputs)"),
    "export": capturing("torch.export", EXPORT, "return program.module()(*inputs)"),
    "onnxruntime": capturing(
        "torch.onnx.export",
        f"{_TYPES}\n{_REAL}\n{_ONNX}\n{_ARRAYS}",
        """import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 3
try:
    session = onnxruntime.InferenceSession(program.SerializeToString(), options, ["CPUExecutionProvider"])
except Exception as error:
    if "NOT_IMPLEMENTED" not in str(error):
        raise
    raise NotImplementedError(str(error)) from None
names = [given.name for given in session.get_inputs()]
given = zip([given.name for given in program.graph.input], arrays)
feeds = {name: array for name, array in given if name in names}
return [torch.as_tensor(result) for result in session.run(None, feeds)]""",
    ),
    "openvino": capturing(
        "openvino.convert_model",
        f"{_TYPES}\n{_REAL}\n{_NARROWS}\nimport openvino\n{EXPORT}\n"
        f"model = openvino.convert_model(program)\n{_ARRAYS}",
        # The frontend drops inputs that nothing reads.
        """compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
given = dict(zip(program.graph_signature.user_inputs, arrays))
results = compiled({port: given[port.any_name] for port in compiled.inputs})
return [torch.as_tensor(results[place]) for place in range(len(compiled.outputs))]""",
    ),
    "tvm": capturing(
        "tvm.relax",
        f"{_TYPES}\n{_REAL}\n"
        "import tvm\n"
        "from tvm import relax\n"
        "from tvm.relax.frontend.torch import from_exported_program\n"
        f"{EXPORT}\nmodule = from_exported_program(program, keep_params_as_input=False)",
        """built = tvm.compile(module, "llvm")
machine = relax.VirtualMachine(built, tvm.cpu())
results = machine["main"](*[tvm.runtime.tensor(tensor.numpy()) for tensor in inputs])
results = [results] if isinstance(results, tvm.runtime.Tensor) else list(results)
return [torch.as_tensor(result.numpy()) for result in results]""",
    ),
}
