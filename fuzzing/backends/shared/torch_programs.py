"""Shared code of backends for torch programs: building, inputs, outputs, capture."""

from __future__ import annotations

import ast
import contextlib
import linecache
import sys
import types
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from fuzzing.backends.base import Named, Unsupported
from fuzzing.cases.values import CARRIERS, RAW_DTYPES, STRING, Absent, Sequence, Tensor, Value

#: Every run starts from this seed, so that random operators draw equal numbers on both sides.
RNG_SEED = 0
#: Functions of `torch._C`, if the release has them, with arguments and the result in a new process.
_DISPATCH_STATE: Tuple[Tuple[str, Tuple[str, ...], Any], ...] = (
    ("_len_torch_dispatch_stack", (), 0),
    ("_len_torch_function_stack", (), 0),
    ("_dispatch_tls_is_dispatch_key_excluded", ("Python",), False),
    ("_is_torch_function_enabled", (), True),
)
#: The module of a program's text; only one at a time, as a worker builds programs one after the other.
MODULE = "assay_program"

_PACKED = frozenset({"float4_e2m1fn", "int4", "uint4", "int2", "uint2"})  # torch packs several into a byte
_CARRIED = {name: CARRIERS[name] for name in RAW_DTYPES - _PACKED}


class Built:
    """A program whose text has been run.

    module     the torch.nn.Module returned by `make()`, in eval mode, without gradients
    precision  "native", or "float64": every narrower float is widened wherever it appears
    backward   whether a run has gradients, and gives those of its inputs as well
    """

    def __init__(self, module: Any, arrange: Any, precision: str, backward: bool = False) -> None:
        self.module = module
        self.precision = precision
        self.backward = backward
        self._arrange = arrange

    def arrange(self, inputs: Named, device: str = "cpu") -> List[Any]:
        """The module's arguments as fresh tensors on `device`, with the program's strides.

        Raises Unsupported for values that are not tensors, which torch programs cannot take.
        """
        if not all(isinstance(value, Tensor) for _, value in inputs):
            raise Unsupported("a torch program takes tensors only, neither sequences nor absent inputs")
        given = {name: to_torch(value, device) for name, value in inputs}
        if self.precision == "float64":
            from fuzzing.backends.shared.torch_float64 import widen_tensor

            given = {name: widen_tensor(tensor) for name, tensor in given.items()}
        return list(self._arrange(given))

    def run(self, inputs: Named, device: str = "cpu") -> Named:
        """Calls the module as it is, seeded; the outputs in order, and the gradients after them."""
        return self.call(self.arrange(inputs, device))

    def call(self, arguments: List[Any]) -> Named:
        """`run` with these arguments."""
        import torch

        with computing_in(self.precision):
            reseed()
            if not self.backward:
                with torch.no_grad():
                    return named_outputs(self.module(*arguments))
            from fuzzing.backends.shared.torch_gradients import run_backward

            result, gradients = run_backward(self.module, arguments)
            return [*named_outputs(result), *((name, from_torch(one)) for name, one in gradients)]


def build(program: Any, device: str = "cpu", precision: str = "native", backward: bool = False) -> Built:
    """Runs the text of a TorchCall or TorchProgram: the module on `device`, and how to arrange its inputs.

    Propagates the exceptions of the text, which is the reproducer's text; the name DEVICE in it is `device`.
    """
    reseed()
    space = execute(program.source(), program.filename)
    if "DEVICE" in space:
        space["DEVICE"] = device
    module = space["make"]().to(device).requires_grad_(False)
    if precision == "float64":  # made natively: both runs have equal parameters, not the same draws
        from fuzzing.backends.shared.torch_float64 import widen_tensor

        module = module._apply(widen_tensor)
    return Built(module, space["arrange"], precision, backward)


def execute(source: str, filename: str, tree: Optional[ast.Module] = None) -> Dict[str, Any]:
    """Runs Python text, or its syntax tree after edits, as the module MODULE; returns its names.

    torch.jit.script, Dynamo and tracebacks look up a function's text and module, so both can be found.
    """
    path = f"/assay/{filename}"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    module = types.ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module
    exec(compile(tree or source, path, "exec"), module.__dict__)  # noqa: S102 - the purpose of a worker
    return module.__dict__


def reseed() -> None:
    """Reseeds torch's generators on the CPU and on the CUDA devices in use.

    `torch.manual_seed` would also record a traceback for each device that is not in use yet: 5 ms.
    """
    import torch

    torch.default_generator.manual_seed(RNG_SEED)
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        cuda.manual_seed_all(RNG_SEED)


@contextlib.contextmanager
def computing_in(name: str) -> Iterator[None]:
    """Within it torch computes natively, or in float64 whatever the program's types."""
    if name == "native":
        yield
        return
    from fuzzing.backends.shared.torch_float64 import WidenMode

    with WidenMode():  # type: ignore[no-untyped-call]
        yield


def is_torch_usable() -> bool:
    """Whether torch, if it is imported, dispatches as in a new process.

    An exception amid torch.export, such as the RecursionError of `torch.sparse_bsc_tensor` (torch 2.13), may
    leave Python's dispatch keys excluded. Then no later program can be captured or compiled.
    """
    if "torch" not in sys.modules:
        return True
    import torch

    probes: Any = torch._C
    return all(
        getattr(probes, name)(*arguments) == fresh
        for name, arguments, fresh in _DISPATCH_STATE
        if hasattr(probes, name)
    )


# Values


def to_torch(value: Value, device: str = "cpu") -> Any:
    """A fresh tensor with the value's elements; a list for a sequence, None for what is absent.

    Raises Unsupported for strings, for packed types and for types this torch lacks.
    """
    if isinstance(value, Absent):
        return None
    if isinstance(value, Sequence):
        return [to_torch(item, device) for item in value.items]
    import torch

    if value.dtype == STRING or value.dtype in _PACKED or not hasattr(torch, value.dtype):
        raise Unsupported(f"torch {torch.__version__} has no {value.dtype} tensors")
    tensor = torch.from_numpy(np.array(value.array()))  # a copy: programs write to their inputs
    if value.dtype in _CARRIED:
        tensor = tensor.view(getattr(torch, value.dtype))
    return tensor.to(device)


def from_torch(tensor: Any) -> Tensor:
    """The elements of a tensor of any layout; raises Unsupported for types that a case cannot name."""
    import torch

    name = str(tensor.dtype)[len("torch.") :]
    if name not in CARRIERS or name in _PACKED or tensor.is_quantized or tensor.is_nested:
        raise Unsupported(f"an output of type {tensor.dtype} cannot be compared")
    dense = tensor.detach()
    if dense.layout != torch.strided:
        dense = dense.to_dense()
    dense = dense.cpu().resolve_conj().resolve_neg().contiguous()
    if name in _CARRIED:
        width = torch.int16 if np.dtype(CARRIERS[name]).itemsize == 2 else torch.uint8
        return Tensor(name, tuple(dense.shape), dense.view(width).numpy().tobytes())
    return Tensor.of(dense.numpy())


def named_outputs(result: Any) -> Named:
    """A module's flattened result: "0", "1", "1.0", "1.key"; a single tensor is "0".

    None is left out, and the others keep their positions. Numbers become tensors of rank 0: bool, int64,
    float64, complex128; texts become strings. Raises Unsupported for anything else.
    """
    if isinstance(result, (tuple, list, dict)):
        return list(_flatten(result, ""))
    return list(_flatten((result,), ""))


def _flatten(result: Any, name: str) -> Iterator[Tuple[str, Value]]:
    import torch

    if result is None:
        return
    if isinstance(result, torch.Tensor):
        yield name, from_torch(result)
    elif isinstance(result, dict):
        for key, item in result.items():
            yield from _flatten(item, f"{name}.{key}" if name else str(key))
    elif isinstance(result, (tuple, list)):
        for place, item in enumerate(result):
            yield from _flatten(item, f"{name}.{place}" if name else str(place))
    elif isinstance(result, (bool, int, float, complex, str)):
        yield name, _scalar(result)
    else:
        raise Unsupported(f"an output of type {type(result).__name__} cannot be compared")


def _scalar(value: Any) -> Tensor:
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        raise Unsupported("a whole number beyond 64 bits cannot be compared")
    return Tensor.of(np.asarray(value))


# Capture


def capture(built: Built, inputs: Named, how: str) -> Any:
    """The program as a graph: "traced", a torch.jit.ScriptModule, or "exported", an ExportedProgram.

    Raises Unsupported, with torch's message, if torch cannot capture it, since no compiler was involved.
    """
    import torch

    arguments = tuple(built.arrange(inputs))
    reseed()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tracing warns of every Python number that becomes a constant
            if how == "traced":
                trace: Any = torch.jit.trace
                return trace(built.module, arguments, check_trace=False, strict=False)
            if not hasattr(torch, "export"):
                raise Unsupported(f"torch {torch.__version__} has no torch.export")
            return torch.export.export(built.module, arguments)
    except Unsupported:
        raise
    except Exception as error:  # torch raises anything here, and all of it is about torch
        lines = str(error).strip().splitlines() or [""]
        road = "torch.jit.trace" if how == "traced" else "torch.export"
        raise Unsupported(f"{road} cannot capture it: {type(error).__name__}: {lines[0][:300]}") from error
