"""Apache TVM, releases 0.25 and later: the Relax frontends, compiler and virtual machine."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, NamedTuple, Tuple

import numpy as np

from fuzzing.backends.base import Backend, Named, Pattern, Rung, Unsupported, register
from fuzzing.cases.programs import Program
from fuzzing.cases.values import RAW_DTYPES, STRING, Sequence, Tensor, Value

#: Element types that TVM's runtime has; complex numbers, strings and packed types are not among them.
_RAW = tuple(name for name in sorted(RAW_DTYPES) if name.startswith(("bfloat16", "float8")))


class _Imported(NamedTuple):
    """A Relax module with the names of what goes in and comes out, in order."""

    module: Any
    inputs: List[str]
    outputs: List[str]


class _Loaded(NamedTuple):
    """A virtual machine that holds the compiled module."""

    machine: Any
    inputs: List[str]
    outputs: List[str]


@register
class Tvm(Backend):
    """A Relax frontend, `tvm.compile`, and the Relax virtual machine.

    Weights stay constants (`keep_params_in_input` is off), so that constant folding has work.

    options: `pipeline`: `zero` runs TVM's pipeline of that name first (it legalises, folds constants and
    fuses), as its guides do; `default` is `tvm.compile` by itself, which fuses nothing on CPUs. `opt`: the
    level of its PassContext, 2 by default as there. `llvm`: the level of LLVM's optimiser, by default as in
    TVM. `cpu`: the processor to compile for; `generic` is TVM's own default and gives the same code on
    every machine, `host` uses all of this one.
    """

    name: ClassVar[str] = "tvm"
    package: ClassVar[str] = "apache-tvm"
    import_name: ClassVar[str] = "tvm"
    devices: ClassVar[Tuple[str, ...]] = ("CPU", "CUDA")
    options: ClassVar[Dict[str, Tuple[str, ...]]] = {
        "pipeline": ("zero", "default"),
        "opt": ("2", "0", "1", "3"),
        "llvm": ("default", "0"),
        "cpu": ("generic", "host"),
    }
    ladder: ClassVar[Tuple[Rung, ...]] = (
        Rung({"pipeline": "default", "opt": "0", "llvm": "0"}, "frontend and legalisation"),
        Rung({"pipeline": "default", "opt": "0", "llvm": "default"}, "LLVM's optimiser"),
        Rung({"pipeline": "default", "opt": "2", "llvm": "default"}, "passes of level 1 and 2"),
        Rung({"pipeline": "zero", "opt": "0", "llvm": "default"}, "constant folding"),
        Rung({"pipeline": "zero", "opt": "2", "llvm": "default"}, "operator fusion"),
    )
    sticky: ClassVar[Tuple[str, ...]] = (r"CUDA_ERROR_(?:ILLEGAL|LAUNCH|MISALIGNED|HARDWARE)\w*",)
    # One case at a time and one worker per core: threads of its own would only fight over them.
    environment: ClassVar[Dict[str, str]] = {"TVM_NUM_THREADS": "1"}
    packages: ClassVar[Tuple[str, ...]] = ("apache-tvm", "apache-tvm-ffi", "onnx", "numpy")
    unsupported: ClassVar[Tuple[Pattern, ...]] = ()

    @classmethod
    def requirements(cls, version: str) -> List[str]:
        """The frontend needs onnx, which TVM does not ask for; 0.25 needs an older foreign function layer."""
        older = ["apache-tvm-ffi==0.1.12"] if version.startswith("0.25.") else []
        return [f"apache-tvm=={version}", *older, "onnx"]

    def load(self, device: str, options: Dict[str, Any]) -> None:
        """Imports tvm and settles target, device and pipeline."""
        import tvm
        from tvm import relax

        settled = self.settle(options)
        self._tvm, self._relax = tvm, relax
        self._level = int(settled["opt"])
        self._pipeline = relax.get_pipeline("zero") if settled["pipeline"] == "zero" else None
        if device == "CUDA":
            self._device, self._target = tvm.cuda(), tvm.target.Target.from_device(tvm.cuda())
        else:
            self._device, self._target = tvm.cpu(), tvm.target.Target(self._cpu_target(settled))

    def _cpu_target(self, settled: Dict[str, str]) -> Dict[str, Any]:
        target: Dict[str, Any] = {"kind": "llvm"}
        if settled["llvm"] != "default":
            target["opt-level"] = int(settled["llvm"])
        if settled["cpu"] == "host":
            target["mcpu"] = self._tvm.target.codegen.llvm_get_system_cpu()
        return target

    def convert(self, program: Program, inputs: Named) -> _Imported:  # noqa: ARG002
        """The Relax module of an ONNX model."""
        import onnx
        from tvm.relax.frontend.onnx import from_onnx

        model = onnx.load_from_string(program.to_bytes())
        weights = {tensor.name for tensor in model.graph.initializer}
        names = [given.name for given in model.graph.input if given.name not in weights]
        return _Imported(from_onnx(model), names, [out.name for out in model.graph.output])

    def compile(self, model: _Imported) -> _Loaded:
        """A virtual machine over what `tvm.compile` gives."""
        module = model.module
        with self._tvm.transform.PassContext(opt_level=self._level), self._target:
            if self._pipeline is not None:
                module = self._pipeline(module)
            executable = self._tvm.compile(module, self._target)
        machine = self._relax.VirtualMachine(executable, self._device)
        return _Loaded(machine, model.inputs, model.outputs)

    def run(self, executable: _Loaded, inputs: Named) -> Named:
        """Calls `main`; what it gives is named in the order of the program's outputs."""
        given = dict(inputs)
        arguments = [self._argument(given[name]) for name in executable.inputs]
        result = executable.machine["main"](*arguments)
        results = [result] if len(executable.outputs) == 1 else list(result)
        return [(name, self._value(found)) for name, found in zip(executable.outputs, results)]

    def _argument(self, value: Value) -> Any:
        if not isinstance(value, Tensor):
            raise Unsupported("TVM's ONNX functions take no sequences or optionals")
        array = value.array()
        if value.dtype in RAW_DTYPES:
            import ml_dtypes

            if value.dtype not in _RAW:
                raise Unsupported(f"TVM's runtime takes no {value.dtype} tensors")
            array = array.view(np.dtype(getattr(ml_dtypes, value.dtype)))
        elif value.dtype == STRING or value.dtype.startswith("complex"):
            raise Unsupported(f"TVM's runtime takes no {value.dtype} tensors")
        return self._tvm.runtime.tensor(array, self._device)

    def _value(self, found: Any) -> Value:
        """A result: a tensor, a tuple of tensors, or the shape that Relax computes with in place of one."""
        if isinstance(found, self._tvm.runtime.Tensor):
            return Tensor.of(found.numpy())
        if isinstance(found, self._tvm.runtime.ShapeTuple):
            return Tensor.of(np.array(list(found), np.int64))
        return Sequence(tuple(Tensor.of(item.numpy()) for item in found))
