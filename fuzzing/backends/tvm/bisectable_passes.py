"""TVM's passes as parts that can be disabled, and its importers' converters, by name."""

from __future__ import annotations

from types import FrameType
from typing import Any, List

from fuzzing.backends.base import Instrumentation

#: Path of TVM's importers and their converters.
FRONTENDS = "/tvm/relax/frontend/"

#: Passes that cannot be disabled: they contain others, or the module cannot become code without them. Found
#: by disabling each alone while a MatMul, a Relu and a Softmax are compiled (TVM 0.27).
_ESSENTIAL = frozenset(
    {
        "AttachGlobalSymbol",
        "CallTIRRewrite",
        "FuseTIR",
        "LegalizeOps",
        "LowerAllocTensor",
        "LowerRuntimeBuiltin",
        "_pipeline",
        "f_zero_pipeline",
        "s_tir.ConvertBlocksToOpaque",
        "s_tir.LowerInitBlock",
        "s_tir.LowerOpaqueBlock",
        "sequential",
        "tirx.BindTarget",
        "tirx.FlattenBuffer",
        "tirx.LowerIntrin",
        "tirx.MakePackedAPI",
    }
)


def instruments(tvm: Any, instrumentation: Instrumentation) -> List[Any]:
    """Arguments of a PassContext that disable passes, and note each as it begins and ends."""
    if not instrumentation.record and not instrumentation.disabled:
        return []

    class Watching:
        def should_run(self, module: Any, info: Any) -> bool:  # noqa: ARG002
            return str(info.name) not in instrumentation.disabled

        def run_before_pass(self, module: Any, info: Any) -> None:  # noqa: ARG002
            name = str(info.name)
            if name not in _ESSENTIAL:
                instrumentation.note("bisectable_pass", name)
            instrumentation.note("entered", name)

        def run_after_pass(self, module: Any, info: Any) -> None:  # noqa: ARG002
            instrumentation.note("left", str(info.name))

    return [tvm.instrument.pass_instrument(Watching)()]


def onnx_converter(frame: FrameType) -> str:
    """`Pad._impl_v18`, from the frame of a converter of the ONNX frontend."""
    owner = frame.f_locals.get("cls")
    name = frame.f_code.co_name
    return f"{owner.__name__}.{name}" if owner is not None and name.startswith("_impl") else ""


def torch_converter(frame: FrameType) -> str:
    """`add.Tensor: _add`, from the frame of a converter of the torch frontend, whose argument is a node."""
    node: Any = frame.f_locals.get("node")
    if type(node).__name__ != "Node" or getattr(node, "op", "") != "call_function":
        return ""
    caller = frame.f_back.f_code.co_name if frame.f_back is not None else ""
    if caller not in _DISPATCHERS or frame.f_code.co_name == "<genexpr>":
        return ""  # a helper of a converter that is noted already
    return f"{getattr(node.target, '__name__', node.target)}: {_qualified(frame)}"


#: Functions of the torch frontend that pass nodes to converters; some of its table's entries are lambdas.
_DISPATCHERS = ("_translate_fx_graph", "<lambda>")


def _qualified(frame: FrameType) -> str:
    """The function's qualified name, where Python provides it (3.11)."""
    return str(getattr(frame.f_code, "co_qualname", frame.f_code.co_name)).replace(".<locals>", "")
