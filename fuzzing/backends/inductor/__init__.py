"""PyTorch's inductor and the layers above it: `torch.compile`, releases 2.6 and later.

The second call is compared. `torch.compile` is lazy, so the first call compiles and belongs to the compile
phase. Before the second call the module's parameters, buffers and attributes are restored, the generators
reseeded and the inputs made anew, so that it must equal the library's only call. It also covers what the
first cannot: guards that do not hold, and memory reused between calls. Writes into inputs are not outputs.
With the option `first_call` the first call has other inputs, so that the second must recompile, or be right
without.

Every program is compiled in full. Dynamo and inductor's caches in the process are reset before each program,
and its graph caches in memory and on disk are off, since an incomplete cache key would return another
program's result. A kernel's shared object is reused within one worker by its source and command, but never
across workers, where a killed process may have left half a file. `header_cache` holds what workers share.

Not yet run on a CUDA device.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Any, ClassVar, Dict, List, Tuple

from fuzzing.backends.base import AblationLevel, Backend, Named, UnsupportedPattern, register
from fuzzing.backends.inductor import bisectable_passes, diagnostics, header_cache
from fuzzing.backends.inductor.header_cache import HeaderCache
from fuzzing.backends.shared import cuda_runtime, torch_programs
from fuzzing.cases.programs import Program

#: Objects that are made before garbage is looked for; a program of ten operators makes some 20,000.
_GARBAGE = 50_000


@register
class Inductor(Backend):
    """`torch.compile(module, fullgraph=False)`: graph breaks are not failures.

    options: `torch_backend`, the backend passed to torch.compile, from inductor (the default) down to eager,
    which is dynamo alone; `dynamic`, off (the default), on or auto: whether sizes are symbols never, from the
    start, or once they change; `first_call`, the inputs of the first call: the same (the default), the same
    elements in another order (values), or each tensor twice along its first axis (shape). Where the library
    itself raises on the other inputs, they are the same; `backward`, on to differentiate both calls and to
    compare the gradients of the inputs, with the library's as the reference.
    """

    name: ClassVar[str] = "inductor"
    package: ClassVar[str] = "torch"
    import_name: ClassVar[str] = "torch"
    traced: ClassVar[Tuple[str, ...]] = ("_dynamo", "_functorch", "_inductor")
    kinds: ClassVar[Tuple[str, ...]] = ("TorchCall", "TorchProgram", "EquivalentPair")
    devices: ClassVar[Tuple[str, ...]] = ("CPU", "CUDA")
    options: ClassVar[Dict[str, Tuple[str, ...]]] = {
        "torch_backend": ("inductor", "aot_eager_decomp_partition", "aot_eager", "eager"),
        "dynamic": ("off", "on", "auto"),
        "first_call": ("same", "values", "shape"),
        "backward": ("off", "on"),
    }
    # As in the section "ablation" of PyTorch's guide to troubleshooting torch.compile.
    ablation: ClassVar[Tuple[AblationLevel, ...]] = (
        AblationLevel({"torch_backend": "eager"}, "dynamo"),
        AblationLevel({"torch_backend": "aot_eager"}, "aot_autograd"),
        AblationLevel({"torch_backend": "aot_eager_decomp_partition"}, "decompositions and partitioner"),
        AblationLevel({"torch_backend": "inductor"}, "inductor"),
    )
    # Those above inductor run no C++ compiler, which takes most of a case's time.
    rungs: ClassVar[Dict[str, Dict[str, str]]] = {
        "dynamo": {"torch_backend": "eager"},
        "aot": {"torch_backend": "aot_eager"},
        "inductor": {"torch_backend": "inductor"},
    }
    sticky: ClassVar[Tuple[str, ...]] = cuda_runtime.STICKY
    packages: ClassVar[Tuple[str, ...]] = ("torch", "triton", "numpy")
    environment: ClassVar[Dict[str, str]] = {"ASSAY_CACHE": "{cache}", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    # Empty: dynamo leaves what it does not support to eager torch, and inductor calls operators without a
    # lowering as a library. Of torch 2.13's 684 operators, each with its first sample, the layers above
    # inductor refuse none, and inductor none of every fifth, or of sparse, quantized, nested and 8-bit
    # tensors.
    unsupported: ClassVar[Tuple[UnsupportedPattern, ...]] = ()

    @classmethod
    def requirements(cls, version: str) -> List[str]:
        """Torch's own requirements, and numpy, which a worker needs."""
        return [f"torch=={version}", "numpy"]

    @classmethod
    def reference_options(cls, options: Dict[str, str]) -> Dict[str, str]:
        """Gradients are compared with the library's."""
        return {name: options[name] for name in ("backward",) if options[name] == "on"}

    def load(self, device: str, options: Dict[str, Any]) -> None:
        """Imports torch.compile's layers; the first worker of a toolchain also fills the shared caches.

        Raises RuntimeError if a C++ compiler, or a CUDA device and Triton, is missing.
        """
        import torch
        import torch._dynamo

        torch.set_num_threads(1)
        self._device = device.lower()
        self._torch_backend: str = options.get("torch_backend", "inductor")
        _check(self._device, self._torch_backend)
        self._dynamic = {"off": False, "on": True, "auto": None}[options.get("dynamic", "off")]
        self._first_call: str = options.get("first_call", "same")
        self._backward = options.get("backward") == "on"
        self._cache = HeaderCache()
        _configure(self._torch_backend)
        if self._torch_backend == "inductor" and self._device == "cpu":
            import torch._inductor.compile_fx

            self._cache = header_cache.open_header_cache(os.environ.get("ASSAY_CACHE", ""))
            header_cache.prepare(self._cache)

    def is_usable(self) -> bool:
        """Whether torch still dispatches as in a new process."""
        return torch_programs.is_torch_usable()

    def convert(self, program: Program, inputs: Named) -> Any:
        """The program's module, and the inputs to compile it for."""
        _reset()
        return torch_programs.build(program, self._device, backward=self._backward), inputs

    def compile(self, model: Any) -> Any:
        """The compiled module, its state restored after the first call."""
        import torch

        built: torch_programs.Built
        built, inputs = model
        before = _ModuleState(built.module)
        arguments = self._first_arguments(built, inputs)
        before.restore()
        built.module = torch.compile(
            built.module, backend=self._torch_backend, fullgraph=False, dynamic=self._dynamic
        )
        with bisectable_passes.instrumented(self.instrumentation):
            built.call(arguments)
        before.restore()
        if self._cache.is_new():
            with self._cache.lock():
                self._cache.publish()
        return built

    def _first_arguments(self, built: torch_programs.Built, inputs: Named) -> List[Any]:
        """The arguments of the first call; see `first_call`."""
        if self._first_call != "same":
            try:
                built.call(self._other_arguments(built, inputs))
            except Exception:  # noqa: BLE001 - the program, or its backward, takes no such inputs
                return built.arrange(inputs, self._device)
            return self._other_arguments(built, inputs)
        return built.arrange(inputs, self._device)

    def _other_arguments(self, built: torch_programs.Built, inputs: Named) -> List[Any]:
        change = _reverse if self._first_call == "values" else _double
        return [change(tensor) for tensor in built.arrange(inputs, self._device)]

    def run(self, executable: Any, inputs: Named) -> Named:
        """The second call; see the module docstring."""
        built: torch_programs.Built = executable
        return built.run(inputs, self._device)


def _check(device: str, torch_backend: str) -> None:
    """Raises RuntimeError if this machine or interpreter lacks something without which every case fails."""
    import torch
    from torch._dynamo.eval_frame import is_dynamo_supported

    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("torch finds no CUDA device on this machine, or is built without CUDA")
    if device == "cuda" and torch_backend == "inductor":
        from torch.utils._triton import has_triton

        if not has_triton():
            raise RuntimeError(
                "inductor compiles for CUDA through Triton, which is not installed here or does not know "
                "this device; install the triton that this torch asks for, or use the CPU"
            )
    if not is_dynamo_supported():
        version = ".".join(map(str, sys.version_info[:2]))
        raise RuntimeError(
            f"torch.compile of torch {torch.__version__} does not run on Python {version}; take an older one"
        )


def _configure(torch_backend: str) -> None:
    """Turns off graph caches and selects the library's own random generators, for equal random numbers.

    Garbage is collected when some programs' worth has gathered: the default threshold is reached 20 times in
    a program, and Dynamo collects after each frame.
    """
    import torch._dynamo.config
    import torch._functorch.config
    import torch._inductor.config

    diagnostics.silence_records()
    if torch_backend == "eager":
        diagnostics.silence_tracing()
    gc.set_threshold(_GARBAGE, 5, 10)
    if hasattr(torch._dynamo.config, "run_gc_after_compile"):
        torch._dynamo.config.run_gc_after_compile = False
    torch._inductor.config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False
    torch._inductor.config.fallback_random = True


def _reverse(tensor: Any) -> Any:
    """The elements in reverse, in the tensor's own layout."""
    return tensor.clone().copy_(tensor.flatten().flip(0).reshape(tensor.shape))


def _double(tensor: Any) -> Any:
    """The tensor twice along its first axis, if it has one."""
    import torch

    return torch.cat([tensor, tensor]) if tensor.dim() else tensor


class _ModuleState:
    """A snapshot of a module's attributes, parameters and buffers.

    Containers that an attribute holds are not copied.
    """

    def __init__(self, module: Any) -> None:
        self._attributes = [(vars(part), _shallow_copy(vars(part))) for part in module.modules()]
        tensors = [*module.parameters(), *module.buffers()]
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in tensors]

    def restore(self) -> None:
        """Restores it, into the same objects, as guards require."""
        import torch

        for current, saved in self._attributes:
            _restore(current, saved)
        with torch.no_grad():
            for tensor, values in self._tensors:
                tensor.copy_(values)


#: torch.nn.Module's dicts of parameters, buffers and submodules.
_REGISTRIES = ("_parameters", "_buffers", "_modules")


def _shallow_copy(attributes: Dict[str, Any]) -> Dict[str, Any]:
    return {**attributes, **{name: dict(attributes[name]) for name in _REGISTRIES if name in attributes}}


def _restore(current: Dict[str, Any], saved: Dict[str, Any]) -> None:
    for name in [name for name in current if name not in saved]:
        del current[name]
    for name, value in saved.items():
        if name in _REGISTRIES:
            _restore(current[name], value)
        elif current.get(name, _MISSING) is not value:
            current[name] = value


_MISSING = object()


def _reset() -> None:
    """Resets the process's compilation state, that of operators which the program before registered too."""
    import torch._dynamo
    import torch._inductor.utils
    import torch.fx.operator_schemas

    torch._dynamo.reset()
    torch._inductor.utils.clear_inductor_caches()
    # By name, under which this program may register another operator; torch 2.13 refuses its call then.
    signatures = getattr(torch.fx.operator_schemas, "_SCHEMA_TO_SIGNATURE_CACHE", {})
    for key in [key for key in signatures if not key[0].startswith("aten::")]:
        del signatures[key]
