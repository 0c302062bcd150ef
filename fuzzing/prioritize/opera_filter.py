"""What OPERA's released code ranks last because the compilers of its time did not support it.

Used only with the option `opera.filter=released`: today's compilers support most of it, and report the rest
with the verdict `unsupported`.
"""

from __future__ import annotations

from fuzzing.errors import UsageError
from fuzzing.prioritize.abstraction import iter_tensors
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context

_MAX_RANK = 5
_NARROW = frozenset({"int8", "int16", "int32", "int64", "uint8", "float16"})
_COMPLEX = frozenset({"complex64", "complex128"})

#: (frontend, backend) → dtypes. ONNX has no list, and no bound on ranks.
REFUSED_DTYPES = {
    ("torch", "tvm"): _NARROW | {"complex128"},
    ("torch", "tensorrt"): _NARROW | {"complex128"},
    ("torch", "openvino"): frozenset({"complex128"}),
    ("keras", "tvm"): _NARROW | _COMPLEX,
    ("keras", "tensorrt"): _NARROW | _COMPLEX,
    ("keras", "openvino"): _COMPLEX | {"uint32", "uint64"},
}


def filter_requested(context: Context) -> bool:
    """Whether the filter is requested; raises UsageError for an unknown value."""
    given = context.options.get("opera.filter", "none")
    if given not in ("none", "released"):
        raise UsageError(f"opera.filter is none or released, not {given!r}")
    return given == "released"


def is_refused(instance: Instance, backend: str) -> bool:
    """Whether the released code gives the instance the distance 0: by its first tensor, the call's input."""
    dtypes = REFUSED_DTYPES.get((instance.frontend, backend))
    if dtypes is None:
        return False
    found = (first for _, value in instance.parameters for first in iter_tensors(value))
    dtype, shape = next(found, ("", []))
    return dtype in dtypes or len(shape) > _MAX_RANK
