"""ONNX's reference evaluator: computes references for cases without expected outputs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fuzzing.backends.base import Backend, Named, UnsupportedPattern, register
from fuzzing.backends.onnx_reference import corrections, float64_widening, undefined_results
from fuzzing.cases.programs import Program
from fuzzing.cases.values import RAW_DTYPES, Absent, Sequence, Tensor, Value

_WIDE = {
    "float16": np.float64,
    "bfloat16": np.float64,
    "float32": np.float64,
    "complex64": np.complex128,
}


@register
class OnnxReference(Backend):
    """`onnx.reference.ReferenceEvaluator` with corrected operators (`corrections`).

    convert parses and checks, compile builds the evaluator.

    options: `precision`, "float64" widens all floats but float8 and smaller (`float64_widening`);
    `undefined`, the number to put where the standard leaves an integer result open (`undefined_results`), by
    default numpy's.
    """

    name: ClassVar[str] = "onnx_reference"
    package: ClassVar[str] = "onnx"
    import_name: ClassVar[str] = "onnx"
    reference: ClassVar[bool] = True
    options: ClassVar[dict[str, tuple[str, ...]]] = {
        "precision": ("native", "float64"),
        "undefined": ("native", "0", "1"),
    }
    packages: ClassVar[tuple[str, ...]] = ("onnx", "ml_dtypes", "numpy")
    unsupported: ClassVar[tuple[UnsupportedPattern, ...]] = (
        UnsupportedPattern("NotImplementedError", r"(.*)", r"the reference evaluator lacks this: \1"),
    )

    def load(self, device: str, options: dict[str, Any]) -> None:  # noqa: ARG002
        """Imports onnx; `device` is ignored."""
        import ml_dtypes
        import onnx
        import onnx.reference

        self._onnx = onnx
        self._wide = options.get("precision") == "float64"
        fill = options.get("undefined", "native")
        self._fill = None if fill == "native" else int(fill)
        self._raw = {
            name: np.dtype(getattr(ml_dtypes, name)) for name in RAW_DTYPES if hasattr(ml_dtypes, name)
        }
        self._names = {dtype: name for name, dtype in self._raw.items()}

    def convert(self, program: Program, inputs: Named) -> Any:  # noqa: ARG002
        """A checked ModelProto."""
        model = self._onnx.load_from_string(program.to_bytes())
        self._onnx.checker.check_model(model)
        return float64_widening.widen(model) if self._wide else model

    def compile(self, model: Any) -> Any:
        """An evaluator over the model."""
        evaluator = corrections.evaluator(self._onnx)
        if self._fill is not None:
            evaluator = undefined_results.evaluator(evaluator, self._fill)
        return evaluator(model)

    def run(self, executable: Any, inputs: Named) -> Named:
        """Evaluates node by node with numpy.

        Raises TypeError if an output has another type than the model declares: such a result is no reference.
        """
        feeds = {name: self._array(value) for name, value in inputs}
        outputs = executable.run(None, feeds)
        if not self._wide:
            for name, type_, out in zip(executable.output_names, executable.output_types, outputs):
                self._check_type(name, type_, out)
        return [(name, self._value(out)) for name, out in zip(executable.output_names, outputs)]

    def _check_type(self, name: str, type_: Any, out: Any) -> None:
        number, dtype = type_.tensor_type.elem_type, getattr(out, "dtype", None)
        if not number or dtype is None or dtype.kind in "OSU":
            return
        declared = self._onnx.helper.tensor_dtype_to_np_dtype(number)
        if dtype != declared:
            raise TypeError(f"onnx gives {dtype} for {name}, which is declared {declared}")

    def _array(self, value: Value) -> Any:
        if isinstance(value, Tensor):
            array = value.array()
            array = array.view(self._raw[value.dtype]) if value.dtype in self._raw else array
            return array.astype(_WIDE.get(value.dtype, array.dtype)) if self._wide else array
        if isinstance(value, Sequence):
            return [self._array(item) for item in value.items]
        return None

    def _value(self, given: Any) -> Value:
        if given is None:
            return Absent()
        if isinstance(given, list):
            return Sequence(tuple(self._tensor(item) for item in given))
        return self._tensor(given)

    def _tensor(self, given: Any) -> Tensor:
        array = np.asarray(given)
        return Tensor.of(array, self._names.get(array.dtype))
