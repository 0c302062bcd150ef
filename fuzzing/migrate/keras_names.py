"""Public names of Keras 3's objects, read once from the installed Keras's namespaces."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

#: Where functions are operators.
_OPERATORS = (
    "keras.activations",
    "keras.ops",
    "keras.ops.image",
    "keras.ops.linalg",
    "keras.ops.nn",
    "keras.ops.numpy",
)
#: Where classes and functions are looked up, in the order in which one of several names is preferred.
_SPACES = (
    "keras.layers",
    *_OPERATORS,
    "keras.initializers",
    "keras.regularizers",
    "keras.constraints",
    "keras.random",
)
#: Functions below these that are no operators: windows, which make a constant of a length; conversions;
#: questions about a tensor; and control flow over functions of the caller's, whose own calls of operators are
#: what a test does.
_NO_OPERATORS = frozenset(
    {"bartlett", "blackman", "hamming", "hanning", "kaiser"}
    | {"convert_to_numpy", "convert_to_tensor", "dtype", "is_tensor", "ndim", "shape", "size"}
    | {"associative_scan", "cond", "custom_gradient", "fori_loop", "jvp", "map", "scan", "switch"}
    | {"vectorize", "vectorized_map", "while_loop"}
    | {"deserialize", "get", "serialize"}
)
#: Layers that are no operators: bases, inputs, and those that hold what text cannot express.
_NO_LAYERS = frozenset({"InputLayer", "InputSpec", "Layer", "Wrapper"})


@cache
def _names() -> dict[int, str]:
    """The public name of each class and function, by id; they live as long as Keras."""
    found: dict[int, str] = {}
    for space in _SPACES:
        for name, member in sorted(_members(space), key=lambda item: (item[0] != item[1].__name__, item[0])):
            found.setdefault(id(member), f"{space}.{name}")
    return found


def _members(space: str) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(space)
    for name, member in vars(module).items():
        if not name.startswith("_") and isinstance(member, (type, types.FunctionType)):
            yield name, member


@cache
def operators() -> dict[str, types.FunctionType]:
    """Every function that is an operator, by its public name."""
    found: dict[str, types.FunctionType] = {}
    for space in _OPERATORS:
        for name, member in _members(space):
            if isinstance(member, types.FunctionType) and name not in _NO_OPERATORS:
                found.setdefault(_names()[id(member)], member)
    return dict(sorted(found.items()))


def layer_name(kind: type) -> str | None:
    """The public name of a layer's class that is an operator; None for any other class."""
    name = class_name(kind)
    if name is None or not name.startswith("keras.layers.") or name.rsplit(".", 1)[-1] in _NO_LAYERS:
        return None
    return name


def class_name(kind: type) -> str | None:
    """The public name of a class; None for one that is not public, such as a test's own."""
    return _names().get(id(kind))


def function_name(function: Any) -> str | None:
    """The public name of a function; None if it has none."""
    return _names().get(id(function)) if inspect.isfunction(function) else None


def is_operation(value: Any) -> bool:
    """Whether a value is a layer or another operation, serialized by its constructor's arguments."""
    from keras import Operation

    return isinstance(value, Operation)


def is_symbolic(value: Any) -> bool:
    """Whether a value is a KerasTensor: a type and a shape, no data."""
    from keras import KerasTensor

    return isinstance(value, KerasTensor)


def is_variable(value: Any) -> bool:
    """Whether a value is a variable of Keras."""
    from keras import Variable

    return isinstance(value, Variable)


def is_keras_tensor(value: Any) -> bool:
    """Whether a value is a tensor of Keras's own: symbolic, or a variable."""
    return is_symbolic(value) or is_variable(value)


def to_backend(array: np.ndarray[Any, Any]) -> Any:
    """An array as a tensor of Keras's backend."""
    from keras import ops

    return ops.convert_to_tensor(array)


def is_policy(value: Any) -> bool:
    """Whether a value is a dtype policy, or a map of policies."""
    from keras.dtype_policies import DTypePolicy, DTypePolicyMap

    return isinstance(value, (DTypePolicy, DTypePolicyMap))


def is_dtype(value: Any) -> bool:
    """Whether a value stands for an element type: numpy's, torch's, or one of Python's number types."""
    import torch

    if isinstance(value, type):
        return value in (bool, int, float) or issubclass(value, np.generic)
    return isinstance(value, (np.dtype, torch.dtype))


def dtype_name(value: Any) -> str:
    """Keras's name of an element type."""
    from keras.backend import standardize_dtype

    return str(standardize_dtype(value))
