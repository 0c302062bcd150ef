"""Dotted names of torch's functions, looked up by recorders at every call."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from fuzzing.cases.arguments import check_dotted

#: Where operators are found, in the order in which one with several names gets its own.
MODULES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.sparse",
    "torch.signal.windows",
    "torch.masked",
    "torch.nested",
    "torch.nn.init",
    "torch.nn.utils.rnn",
)
#: Attributes of a tensor that compute something.
PROPERTIES = ("H", "T", "imag", "mH", "mT", "real")
#: How tests spell their data, and what changes no element: no operators, though they give tensors.
_NOT_OPERATORS = frozenset(
    {
        *(
            "tensor",
            "as_tensor",
            "asarray",
            "from_numpy",
            "frombuffer",
            "from_dlpack",
            "from_file",
            "scalar_tensor",
        ),
        *("load", "save", "get_default_dtype", "manual_seed", "compile", "vmap", "cond", "while_loop"),
        *("requires_grad_", "retain_grad", "share_memory_", "as_subclass", "pin_memory", "rename", "rename_"),
        *("refine_names", "align_to", "align_as", "align_tensors", "get_rng_state", "set_rng_state", "seed"),
        *(
            "__deepcopy__",
            "__reduce_ex__",
            "__reduce__",
            "__setstate__",
            "__array__",
            "__iter__",
            "__array_wrap__",
        ),
        *("cpu", "cuda", "xpu", "ipu", "mtia", "hpu", "backward", "set_", "set_data", "_make_subclass"),
    }
)
#: Functions whose result holds what nobody wrote.
UNINITIALIZED = frozenset(
    {
        *("torch.empty", "torch.empty_like", "torch.empty_strided", "torch.empty_permuted"),
        *(
            "torch.Tensor.new_empty",
            "torch.Tensor.new_empty_strided",
            "torch.Tensor.resize_",
            "torch.Tensor.new",
        ),
        *("torch.Tensor.resize_as_", "torch.resize_as_"),
    }
)


def function_names() -> dict[Any, str]:
    """The dotted name of each public function of torch and each method of its tensors, by the function."""
    import torch

    found: dict[Any, str] = {}
    for dotted in MODULES:
        try:
            module = importlib.import_module(dotted)
        except ImportError:  # an older torch has fewer
            continue
        for name, function in _functions(module):
            found.setdefault(function, f"{dotted}.{name}")
    for name in dir(torch.Tensor):
        function = getattr(torch.Tensor, name, None)
        if name in PROPERTIES:
            found.setdefault(function.__get__, f"torch.Tensor.{name}")  # type: ignore[union-attr]
        elif callable(function) and _operator(name) and not inspect.isclass(function):
            found.setdefault(function, f"torch.Tensor.{name}")
    return found


def _functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, function in sorted(vars(module).items()):
        if name.startswith("_") or not _operator(name) or not callable(function):
            continue
        if not inspect.isclass(function) and function.__hash__ is not None:
            yield name, function


def _operator(name: str) -> bool:
    """Whether `name` may be an operator's: public, or one of Python's own such as __add__."""
    dunder = name.startswith("__") and name.endswith("__")
    return name not in _NOT_OPERATORS and (dunder or not name.startswith("_"))


def module_names() -> dict[type, str]:
    """The dotted name of each class of torch.nn whose instances are operators, by the class.

    Without those that only call their members (Sequential), and those that change their class on the first
    call (LazyLinear).
    """
    import torch

    found: dict[type, str] = {}
    for name, cls in sorted(vars(torch.nn).items()):
        if not inspect.isclass(cls) or not issubclass(cls, torch.nn.Module) or name in CONTAINERS:
            continue
        if not name.startswith("Lazy") and cls.__module__.startswith("torch."):
            found.setdefault(cls, check_dotted(f"torch.nn.{name}", "torch"))
    return found


#: Classes of torch.nn that only call or keep what they hold.
CONTAINERS = frozenset(
    {"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Container"}
) | {"DataParallel"}
