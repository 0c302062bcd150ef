"""tinygrad's ONNX importer: which function imports an operator."""

from __future__ import annotations

from types import FrameType

#: Part of the path of the importer's file.
FRONTEND = "/tinygrad/nn/onnx.py"
#: The function of the importer that defines those of all operators.
_SCOPE = "get_onnx_ops.<locals>."


def onnx_converter(frame: FrameType) -> str:
    """`Conv`, from the frame of a function that imports an operator; such names begin with a capital."""
    _, inside, name = frame.f_code.co_qualname.partition(_SCOPE)
    return name if inside and name[:1].isupper() and "." not in name else ""
