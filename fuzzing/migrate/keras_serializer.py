"""Serializes a live call of Keras: Python values become typed arguments, tensors become inputs.

Layers are serialized by their constructor's arguments, functions by name, tensors by type, shape and data.
Arguments equal to their default are left out, so that one instance has one form.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fuzzing.backends.base import Unsupported
from fuzzing.backends.shared.torch_programs import from_torch
from fuzzing.cases import Argument, Input, Name, NewObject, Recipe, Tensor, TensorArg
from fuzzing.cases.arguments import Kwargs
from fuzzing.cases.values import RAW_DTYPES, STRING
from fuzzing.errors import CaseFormatError
from fuzzing.migrate import keras_names
from fuzzing.torch_api.serializer import NotSerializableError, recipe_or_value

__all__ = [
    "NoDataError",
    "NotSerializableError",
    "Serializer",
    "constructor_arguments",
    "is_tensor",
    "serialize",
]

#: Where a made object keeps what it was made with: (positional, by keyword).
CONSTRUCTOR_ARGUMENTS = "_assay_made_with"
MAX_DATA_BYTES = 4096  # of an input that is kept as it was; of a larger one, only between which bounds it lay
MAX_INPUT_BYTES = 1 << 24
_MAX_LISTED = 64  # elements of an array that a constructor takes
#: What stands for the unknown dimensions of a symbolic tensor: the first, the others, and those of images
#: and above, which windows must fit into. 2 and 3 make the library's own (None, 3) and (2, None) broadcast.
_BATCH, _UNKNOWN, _UNKNOWN_LARGE = 2, 3, 8
_IMAGE_RANK = 4
_SYMBOLIC_SEED = 0
#: Texts and weights: neither changes what a model computes once its weights are drawn from the case's seed.
_OMITTED = frozenset({"name"})

_BY_PLACE_OR_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD

SerializedArguments = tuple[tuple[Argument, ...], Kwargs]


class NoDataError(NotSerializableError):
    """A call by Keras itself that only computes a shape."""


class Serializer:
    """Serializes the arguments of one call.

    inputs  the tensors met so far, by parameter names; one tensor met twice is one input
    dtype   the type to which the called layer casts floats; None for unchanged
    """

    def __init__(self, dtype: str | None = None) -> None:
        self.inputs: dict[str, Input] = {}
        self._dtype = dtype
        self._serialized: dict[int, tuple[Any, TensorArg]] = {}  # the tensor is kept: ids are reused

    def call(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> SerializedArguments:
        """The arguments of a call: leading tensors by position, all else by name and without defaults.

        Raises NotSerializableError.
        """
        positional: list[Argument] = []
        named: dict[str, Argument] = {}
        order = list(_signature(function).parameters)
        all_lead = _must_lead(function, args)
        for name, value, parameter in _bound(function, args, kwargs):
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += [self.argument(item, name) for item in value]
                continue
            serialized = self.argument(value, name)
            is_next = order[len(positional) : len(positional) + 1] == [name]
            leads = all_lead or (is_next and _holds_tensor(serialized))
            if leads and parameter.kind is _BY_PLACE_OR_NAME:
                positional.append(serialized)
            elif not _is_default(value, parameter):
                named[name] = serialized
        return tuple(positional), tuple(named.items())

    def argument(self, value: Any, name: str) -> Argument:
        """One argument, whose tensors are named after `name`. Raises NotSerializableError."""
        if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str):
            return value
        if is_tensor(value):
            return self._tensor(value, name)
        if isinstance(value, slice):
            return slice(*(self.argument(part, name) for part in (value.start, value.stop, value.step)))
        if isinstance(value, (list, tuple)):
            return _same_kind(value, [self.argument(item, name) for item in value])
        if isinstance(value, Mapping):
            return {_text(key): self.argument(item, name) for key, item in value.items()}
        return serialize(value)

    def _tensor(self, tensor: Any, name: str) -> TensorArg:
        if id(tensor) not in self._serialized:
            value = _input(tensor, self._dtype)
            argument = TensorArg(self._unused_name(name), dtype=value.dtype, shape=value.shape)
            self._serialized[id(tensor)] = tensor, argument
            self.inputs[argument.name] = value
        return self._serialized[id(tensor)][1]

    def _unused_name(self, name: str) -> str:
        try:
            TensorArg(name)
        except CaseFormatError:
            name = f"{name}_"
        names = (name, *(f"{name}{count}" for count in range(1, len(self.inputs) + 1)))
        return next(free for free in names if free not in self.inputs)


def serialize(value: Any) -> Argument:
    """A value without tensors: plain values, types, functions and objects of Keras.

    Raises NotSerializableError.
    """
    if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str):
        return value
    if isinstance(value, (list, tuple)):
        return _same_kind(value, [serialize(item) for item in value])
    if isinstance(value, Mapping):
        return {_text(key): serialize(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return serialize(value.item())
    if isinstance(value, np.ndarray):
        if value.size > _MAX_LISTED or value.dtype.kind not in "biuf":
            raise NotSerializableError(
                "a layer was made with an array that is too large to write", str(value.shape)
            )
        return value.tolist()
    if keras_names.is_dtype(value):
        return keras_names.dtype_name(value)
    if keras_names.is_policy(value):
        if type(value).__name__ == "DTypePolicyMap":
            raise NotSerializableError("a layer has a type policy for each of its parts")
        return str(value.name)
    if inspect.isroutine(value):
        name = keras_names.function_name(value)
        if name is None:
            raise NotSerializableError("an argument is a function without a name in Keras", repr(value)[:80])
        return Name(name)
    return _serialize_object(value)


def constructor_arguments(instance: Any) -> Kwargs:
    """A layer's constructor arguments, by name and without defaults. Raises NotSerializableError."""
    found = vars(instance).get(CONSTRUCTOR_ARGUMENTS)
    if found is None:
        raise NotSerializableError("the constructor of a layer was not recorded", type(instance).__name__)
    args, kwargs = found
    serialized = {}
    for name, value, parameter in _bound(type(instance), args, kwargs):
        if parameter.kind is parameter.VAR_POSITIONAL and value:
            raise NotSerializableError(
                "a layer was made with any number of arguments", type(instance).__name__
            )
        if name not in _OMITTED and not _is_default(value, parameter):
            serialized[name] = serialize(value)
    return tuple(serialized.items())


def is_tensor(value: Any) -> bool:
    """Whether a value becomes an input: a tensor or variable of Keras or torch, or an array with a shape."""
    import torch

    return isinstance(value, (torch.Tensor, np.ndarray)) or keras_names.is_keras_tensor(value)


# Parts of a call --------------------------------------------------------------------------------------


def _bound(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any, inspect.Parameter]]:
    try:
        signature = _signature(function)
        given = signature.bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise NotSerializableError("a call does not fit its signature", str(error)) from None
    for name, value in given.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            yield from ((key, item, parameter) for key, item in value.items())
        else:
            yield name, value, parameter


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Of a class, that of `__init__`: layers also have a `__new__`, which takes anything."""
    if not isinstance(function, type):
        return inspect.signature(function)
    signature = inspect.signature(function.__init__)  # type: ignore[misc]
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _must_lead(function: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether positional arguments must stay positional: variadic ones follow."""
    parameters = _signature(function).parameters.values()
    fixed = [item for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
    return len(args) > len(fixed) and any(item.kind is item.VAR_POSITIONAL for item in parameters)


def _is_default(value: Any, parameter: inspect.Parameter) -> bool:
    if parameter.default is parameter.empty:
        return value is None and parameter.kind is parameter.VAR_KEYWORD  # Layer's own are None by default
    default = parameter.default
    return value is default or (
        type(value) is type(default) and type(value) in (bool, int, float, str, tuple) and value == default
    )


def _holds_tensor(argument: Argument) -> bool:
    if isinstance(argument, (list, tuple)):
        return any(map(_holds_tensor, argument))
    if isinstance(argument, dict):
        return any(map(_holds_tensor, argument.values()))
    return isinstance(argument, TensorArg)


def _same_kind(value: Sequence[Any], items: list[Argument]) -> Argument:
    """A list or tuple; Keras's own kinds of list count as lists, named tuples are not supported."""
    if isinstance(value, tuple):
        if type(value) is tuple or type(value).__name__ == "Size":  # torch.Size
            return tuple(items)
        raise NotSerializableError("an argument is of a type that has no form as text", type(value).__name__)
    return items


def _text(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise NotSerializableError("a dict has keys that are no texts", repr(key)[:80])


# Objects ----------------------------------------------------------------------------------------------


def _serialize_object(value: Any) -> NewObject:
    api = keras_names.class_name(type(value))
    if api is None:
        raise NotSerializableError("an argument is an object that is not Keras's own", type(value).__name__)
    if keras_names.is_operation(value):
        return NewObject(api, (), constructor_arguments(value))
    config = getattr(value, "get_config", None)
    if config is None:
        raise NotSerializableError("an argument is of a type that has no form as text", type(value).__name__)
    parameters = _signature(type(value)).parameters
    given = {name: item for name, item in config().items() if name not in _OMITTED}
    serialized = [
        (name, serialize(item))
        for name, item in given.items()
        if name not in parameters or not _is_default(item, parameters[name])
    ]
    return NewObject(api, (), tuple(serialized))


# Tensors ----------------------------------------------------------------------------------------------


def _input(tensor: Any, dtype: str | None) -> Tensor | Recipe:
    if keras_names.is_symbolic(tensor):
        return _make_recipe(concrete_shape(tensor), _cast(str(tensor.dtype), dtype), 0.0, 1.0)
    value = _value(tensor)
    wanted = _cast(value.dtype, dtype)
    if wanted != value.dtype:
        value = _converted(value, wanted)
    if len(value.data) <= MAX_DATA_BYTES or value.dtype == "bool":
        return _recipe_or_data(value)
    numbers = _finite(value)
    if not numbers.size:
        return _recipe_or_data(value)
    return _make_recipe(value.shape, value.dtype, float(numbers.min()), float(numbers.max()))


def _recipe_or_data(value: Tensor) -> Tensor | Recipe:
    """The data, as a recipe where one gives exactly them."""
    found = recipe_or_value(value)
    assert isinstance(found, (Tensor, Recipe))  # of a tensor it is nothing else
    return found


def _value(tensor: Any) -> Tensor:
    import torch

    if keras_names.is_variable(tensor):
        tensor = tensor.value
    if not isinstance(tensor, torch.Tensor):
        if tensor.dtype.kind in "OSUMm":
            raise NotSerializableError("an input holds texts or objects", str(tensor.dtype))
        tensor = keras_names.to_backend(tensor)
    if not _has_data(tensor):
        raise NoDataError("an input is a tensor without data")
    if tensor.layout is not torch.strided:
        raise NotSerializableError("an input is sparse", str(tensor.layout))
    if tensor.numel() * tensor.element_size() > MAX_INPUT_BYTES:
        raise NotSerializableError("a tensor is too large to keep", str(tuple(tensor.shape)))
    try:
        value = from_torch(tensor.detach())
    except Unsupported as error:
        raise NotSerializableError("a tensor is of a type that a case cannot hold", str(error)) from None
    if value.dtype == STRING:
        raise NotSerializableError("an input holds texts or objects")
    return value


def _has_data(tensor: Any) -> bool:
    """Whether a tensor has elements: not on the meta device, not fake, not one of a batch under vmap."""
    import torch

    if tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    try:
        tensor.data_ptr()
    except RuntimeError:  # torch has no question for it
        return tensor.layout is not torch.strided
    return True


def _cast(have: str, want: str | None) -> str:
    return want if want is not None and "float" in have and "float" in want else have


def _converted(value: Tensor, dtype: str) -> Tensor:
    import torch

    from fuzzing.backends.shared.torch_programs import to_torch

    return from_torch(to_torch(value).to(getattr(torch, dtype)))


def _finite(value: Tensor) -> np.ndarray[Any, Any]:
    from fuzzing.backends.shared.torch_programs import to_torch

    array: np.ndarray[Any, Any]
    if value.dtype in RAW_DTYPES:
        array = to_torch(value).double().numpy()
    else:
        array = value.array()
    if array.dtype.kind == "c":
        array = array.real
    finite: np.ndarray[Any, Any] = array[np.isfinite(array)]
    return finite


def _make_recipe(shape: tuple[int, ...], dtype: str, low: float, high: float) -> Tensor | Recipe:
    """Numbers between bounds, from a fixed seed."""
    if dtype == "bool":
        return Recipe("integers", dtype, shape, 0, 1, _SYMBOLIC_SEED)
    if dtype in RAW_DTYPES or dtype.startswith("complex"):
        drawn = Recipe("uniform", "float32", shape, low, high, _SYMBOLIC_SEED).draw()
        return _converted(drawn, dtype)
    if dtype.startswith(("int", "uint")):
        whole = (math.floor(low), math.ceil(high))
        return Recipe("integers", dtype, shape, *whole, _SYMBOLIC_SEED)
    return Recipe("uniform", dtype, shape, low, high, _SYMBOLIC_SEED)


def concrete_shape(tensor: Any) -> tuple[int, ...]:
    """A tensor's shape, with a size for each unknown dimension. Raises NotSerializableError."""
    shape = tuple(tensor.shape)
    other = _UNKNOWN_LARGE if len(shape) >= _IMAGE_RANK else _UNKNOWN
    if getattr(tensor, "sparse", False) or getattr(tensor, "ragged", False):
        raise NotSerializableError("an input is sparse or ragged")
    sizes = [
        (_BATCH if place == 0 else other) if dim is None else int(dim) for place, dim in enumerate(shape)
    ]
    return tuple(sizes)
