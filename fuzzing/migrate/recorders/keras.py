"""Records the calls of Keras 3: layers, `keras.activations` and `keras.ops`, on its torch backend.

A layer is recorded by the constructor arguments of that instance and the arguments of its call. Only the
outermost call of an operator counts; a test's own layers and models are looked through. A functional model is
a call of each of its layers, with symbolic tensors as inputs of their type and shape. Calls are for
inference, without `training`.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Hashable, Mapping
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from fuzzing.backends.shared.keras_models import ENVIRONMENT
from fuzzing.cases import KerasLayer, Provenance, TestCase
from fuzzing.errors import CaseFormatError
from fuzzing.migrate import keras_names, keras_serializer
from fuzzing.migrate.keras_serializer import (
    CONSTRUCTOR_ARGUMENTS,
    NoDataError,
    NotSerializableError,
    Serializer,
)
from fuzzing.migrate.recorders.base import SOURCE, Sink, instance_key, register_recorder

_KEY = "_assay_made_key"
_MAX_VALUES = 16  # elements of a whole-number array that count by value: axes, shapes, repeats
_MAX_DEPTH = 24


def _call_original(*args: Any, _assay: Callable[..., Any], **kwargs: Any) -> Any:
    """Its code replaces that of a watched function; `_assay` is the default that function then has."""
    return _assay(*args, **kwargs)


@register_recorder
class Keras:
    """Watches the operators of one process."""

    library: ClassVar[str] = "keras"
    #: What the recorded command needs beside its own environment: inputs are stored in torch's layout.
    environment: ClassVar[Mapping[str, str]] = ENVIRONMENT

    def __init__(self) -> None:
        self._inside = threading.local()

    def start(self, sink: Sink) -> None:
        """Wraps `Layer.__call__`, notes constructor arguments, and watches every function."""
        import inspect

        import keras

        self._sink = sink
        self._version = str(keras.__version__)
        self._watch_constructors(keras.Operation)
        self._watch_layers(keras.layers.Layer)
        for name, function in keras_names.operators().items():
            signature = inspect.signature(function)
            original = types.FunctionType(
                function.__code__, function.__globals__, function.__name__, function.__defaults__
            )
            original.__kwdefaults__ = function.__kwdefaults__
            original.__signature__ = signature  # type: ignore[attr-defined]
            # The object stays the same, because Keras has it in tables and under several names.
            function.__code__ = _call_original.__code__.replace(co_name=function.__name__)
            function.__defaults__ = None
            function.__kwdefaults__ = {"_assay": self._watched(name, original)}
            function.__signature__ = signature  # type: ignore[attr-defined]

    def _watch_constructors(self, operation: Any) -> None:
        """`Operation.__new__` gets any layer's arguments; its signature is the class's own."""
        new = operation.__new__

        def note(cls: type, *args: Any, **kwargs: Any) -> Any:
            instance = new(cls, *args, **kwargs)
            vars(instance)[CONSTRUCTOR_ARGUMENTS] = args, kwargs
            return instance

        operation.__new__ = staticmethod(note)

    def _watch_layers(self, layer: Any) -> None:
        call = layer.__call__

        def watched(instance: Any, *args: Any, **kwargs: Any) -> Any:
            if self._busy:
                return call(instance, *args, **kwargs)
            name = keras_names.layer_name(type(instance))
            if name is None:  # a test's own: what it calls inside is recorded
                return call(instance, *args, **kwargs)
            return self._layer_call(name, call, instance, args, kwargs)

        watched.__name__ = watched.__qualname__ = "__call__"
        layer.__call__ = watched

    @property
    def _busy(self) -> bool:
        return getattr(self._inside, "depth", 0) > 0

    def _layer_call(
        self, name: str, call: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        kept = {key: value for key, value in kwargs.items() if key != "training"}

        def serialize_arguments() -> tuple[KerasLayer, Serializer]:
            if getattr(instance, "quantization_mode", None) and not _quantized_from_start(instance):
                raise NotSerializableError("a layer was quantized after it was made")
            serializer = Serializer(_input_dtype(instance))
            positional, named = serializer.call(instance.call, args, kept)
            named = tuple(item for item in named if item[0] != "training")
            return KerasLayer(
                name, keras_serializer.constructor_arguments(instance), positional, named
            ), serializer

        key = (name, _constructor_key(instance), _key(args), _key(kept))
        return self._recorded(name, key, serialize_arguments, lambda: call(instance, *args, **kwargs))

    def _watched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._busy:
                return original(*args, **kwargs)

            def serialize_arguments() -> tuple[KerasLayer, Serializer]:
                serializer = Serializer()
                positional, named = serializer.call(original, args, kwargs)
                if not serializer.inputs:
                    raise NotSerializableError("the call takes no tensor")
                return KerasLayer(name, named, positional), serializer

            key = (name, _key(args), _key(kwargs))
            return self._recorded(name, key, serialize_arguments, lambda: original(*args, **kwargs))

        return watched

    def _recorded(
        self,
        name: str,
        key: Hashable,
        serialize_arguments: Callable[[], tuple[KerasLayer, Serializer]],
        call: Callable[[], Any],
    ) -> Any:
        sink = self._sink
        self._inside.depth = 1
        try:
            if not sink.new(key):
                return call()
            begin = perf_counter()
            case = self._case(name, serialize_arguments)  # before the call, which may write to its arguments
            called = perf_counter()
            try:
                result = call()
            except BaseException:
                sink.forget(key)
                raise
            ended = perf_counter()
            if case is not None and sink.new(instance_key(case)):
                sink.case(case)
            sink.spent(called - begin + perf_counter() - ended)
            return result
        finally:
            self._inside.depth = 0

    def _case(
        self, name: str, serialize_arguments: Callable[[], tuple[KerasLayer, Serializer]]
    ) -> TestCase | None:
        try:
            program, serializer = serialize_arguments()
            program.to_bytes()
        except NoDataError:
            pass
        except NotSerializableError as error:
            self._sink.skip(name, str(error), error.detail)
        except CaseFormatError as error:
            self._sink.skip(name, "the call has no form in a case", str(error))
        except Exception:  # noqa: BLE001 - ours, or an unknown kind of object; kept, and reported by `collect`
            self._sink.bug(name)
        else:
            return TestCase(
                program=program,
                inputs=tuple((tensor.name, serializer.inputs[tensor.name]) for tensor in program.tensors),
                provenance=Provenance(SOURCE, self._sink.test(), name, self.library, self._version),
            )
        return None


def _input_dtype(layer: Any) -> str | None:
    """The float type to which a layer casts its inputs; None if it does not cast."""
    if not getattr(layer, "autocast", False) or not getattr(layer, "_convert_input_args", True):
        return None
    return str(layer.input_dtype)


def _quantized_from_start(layer: Any) -> bool:
    """Whether a layer is quantized by its constructor's dtype, which is recorded."""
    return "_from_" in str(vars(layer).get(CONSTRUCTOR_ARGUMENTS, ((), {}))[1].get("dtype", ""))


# Keys -------------------------------------------------------------------------------------------------


def _constructor_key(instance: Any) -> Hashable:
    kept = vars(instance)
    if _KEY not in kept:
        args, kwargs = kept.get(CONSTRUCTOR_ARGUMENTS, ((), {}))
        kept[_KEY] = (_key(args), _key({name: item for name, item in kwargs.items() if name != "name"}))
    return kept[_KEY]  # type: ignore[no-any-return]


def _key(value: Any, depth: int = 0) -> Hashable:
    """A key of a call: scalars by value, tensors by type and shape, the rest by identity."""
    if value is None or isinstance(value, (bool, int, float, complex, str, type)):
        return (type(value).__name__, str(value))
    if depth > _MAX_DEPTH:
        return id(value)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *(_key(item, depth + 1) for item in value))
    if isinstance(value, Mapping):
        return tuple((str(name), _key(item, depth + 1)) for name, item in value.items())
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, _values_key(value))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return (str(value.dtype), tuple(value.shape))
    if keras_names.is_operation(value):
        return (type(value), _constructor_key(value))
    if hasattr(value, "get_config") and keras_names.class_name(type(value)) is not None:
        return (type(value), _key(value.get_config(), depth + 1))
    return id(value)


def _values_key(array: np.ndarray[Any, Any]) -> Hashable:
    return array.tobytes() if array.dtype.kind in "iu" and array.size <= _MAX_VALUES else None
