"""A compiler with planted faults: onnxruntime, whose outputs are spoiled as the model's producer_name says.

A fault that changes nothing, such as a flipped sign where all is 0, is none: the case is then Unsupported.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import onnx

from fuzzing.backends.base import Backend, Named, Unsupported, UnsupportedPattern, get, register
from fuzzing.cases.programs import OnnxModel, Program
from fuzzing.cases.values import RAW_DTYPES, STRING, Tensor, Value

Array = np.ndarray[Any, Any]

#: Faults that an oracle must see, and what a correct compiler may do, which it must not.
REAL = ("sign", "attribute", "axes", "uninitialized", "half", "stale", "shifted")
INNOCENT = ("none", "ulp", "tie")


def plant(program: Program, fault: str) -> OnnxModel:
    """The same program with a fault."""
    model = onnx.load_from_string(program.to_bytes())
    model.producer_name = fault
    return OnnxModel(model.SerializeToString(deterministic=True))


@register
class Miscompiling(Backend):
    name: ClassVar[str] = "miscompiling"
    package: ClassVar[str] = "onnxruntime"
    import_name: ClassVar[str] = "onnxruntime"
    # What onnxruntime itself refuses is no fault of ours.
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("", "", "onnxruntime refuses this"),
    )

    def load(self, device: str, options: dict[str, Any]) -> None:
        self._honest = get("onnxruntime")()
        self._honest.load(device, {})
        self._last: dict[tuple[str, tuple[int, ...]], Value] = {}

    def convert(self, program: Program, inputs: Named) -> Any:
        model = onnx.load_from_string(program.to_bytes())
        spoiled = onnx.load_from_string(program.to_bytes())
        fault = model.producer_name
        changed = fault in ("attribute", "tie") and _SPOIL_MODEL[fault](spoiled)
        if not changed:
            return fault, self._honest.convert(program, inputs), None
        faulty = OnnxModel(spoiled.SerializeToString())
        return fault, self._honest.convert(program, inputs), self._honest.convert(faulty, inputs)

    def compile(self, model: Any) -> Any:
        fault, honest, spoiled = model
        compiled = None if spoiled is None else self._honest.compile(spoiled)
        return fault, self._honest.compile(honest), compiled

    def run(self, executable: Any, inputs: Named) -> Named:
        fault, honest, spoiled = executable
        right = self._honest.run(honest, inputs)
        if fault == "none":
            return right
        wrong = right if spoiled is None else self._honest.run(spoiled, inputs)
        if fault in _SPOIL:
            wrong = [(name, _SPOIL[fault](value)) for name, value in right]
        elif fault == "stale":
            wrong = [(name, self._stale(value)) for name, value in right]
        if not any(_changed(one, other, fault) for (_, one), (_, other) in zip(right, wrong, strict=True)):
            raise Unsupported("the fault changes nothing here")
        return wrong

    def _stale(self, value: Value) -> Value:
        """What an earlier case gave of this type and shape: a buffer that was not written again."""
        if not isinstance(value, Tensor):
            return value
        key = value.dtype, value.shape
        old = self._last.get(key, value)
        self._last[key] = value
        return old


def _changed(right: Value, wrong: Value, fault: str) -> bool:
    """Whether more is changed than a compiler may change; for what it may, whether anything is."""
    if fault in INNOCENT or not isinstance(right, Tensor) or not isinstance(wrong, Tensor):
        return right != wrong
    if (right.dtype, right.shape) != (wrong.dtype, wrong.shape):
        return True
    if right.dtype not in ("float16", "float32", "float64", "complex64", "complex128"):
        return right != wrong
    rtol = {"float16": 1e-2, "float32": 1e-5}.get(right.dtype, 1e-7)
    return not np.allclose(wrong.array(), right.array(), rtol=rtol, atol=2e-5, equal_nan=True)


def _numeric(corrupt: Any) -> Any:
    def spoiled(value: Value) -> Value:
        if not isinstance(value, Tensor) or value.dtype == STRING or value.dtype in RAW_DTYPES:
            return value
        with np.errstate(all="ignore"):
            return Tensor.of(corrupt(value.array()).reshape(value.shape), value.dtype)

    return spoiled


def _negated(array: Array) -> Array:
    return ~array if array.dtype.kind == "b" else (-array).astype(array.dtype)


def _swapped(array: Array) -> Array:
    """The elements as they lie if the last two axes are taken for each other."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)) if array.ndim > 1 else array


def _uninitialized(array: Array) -> Array:
    """The second half never written, and another pointer's bytes in it."""
    data = bytearray(array.tobytes())
    half = len(data) // 2
    data[half:] = (b"\x10\xa7\x5c\x3e\xc4\x7f" * len(data))[half : len(data)]
    if array.dtype.kind == "b":
        data = bytearray(byte & 1 for byte in data)
    return np.frombuffer(bytes(data), array.dtype)


def _halved(array: Array) -> Array:
    return array.astype(np.float16).astype(array.dtype) if array.dtype in (np.float32, np.float64) else array


def _shifted(array: Array) -> Array:
    """One off at the border: every element from its neighbor."""
    return np.roll(array.ravel(), 1)


def _neighbors(array: Array) -> Array:
    if array.dtype.kind != "f":
        return array
    return np.where(np.isfinite(array), np.nextafter(array, array.dtype.type(0)), array)


_SPOIL = {
    "sign": _numeric(_negated),
    "axes": _numeric(_swapped),
    "uninitialized": _numeric(_uninitialized),
    "half": _numeric(_halved),
    "shifted": _numeric(_shifted),
    "ulp": _numeric(_neighbors),
    "type": lambda value: Tensor.of(value.array().astype(np.float64)),
}


def _drop_attribute(model: Any) -> bool:
    """Drops the first attribute that an operator can do without."""
    for node in model.graph.node:
        for attribute in node.attribute:
            known = onnx.defs.get_schema(node.op_type, domain=node.domain).attributes.get(attribute.name)
            if known is not None and not known.required:
                node.attribute.remove(attribute)
                return True
    return False


def _break_ties(model: Any) -> bool:
    """The last of equal elements instead of the first."""
    nodes = [node for node in model.graph.node if node.op_type in ("ArgMax", "ArgMin")]
    for node in nodes:
        kept = [item for item in node.attribute if item.name != "select_last_index"]
        was = any(item.i for item in node.attribute if item.name == "select_last_index")
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute("select_last_index", int(not was))])
    return bool(nodes)


_SPOIL_MODEL = {"attribute": _drop_attribute, "tie": _break_ties}
