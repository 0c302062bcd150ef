"""The recorder of torch: functions, tensor methods and modules, as the running test calls them.

A TorchFunctionMode sees functions and methods, factories included, before torch computes anything; modules of
torch.nn are seen by their shared `__call__`. Only the test's own calls are recorded, not those inside modules
or `torch.testing`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from importlib.metadata import version
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

from fuzzing.cases import Comparison, Init, Provenance, TestCase, TorchCall
from fuzzing.errors import CaseFormatError
from fuzzing.migrate.recorders.base import SOURCE, Sink, register_recorder
from fuzzing.migrate.recorders.torch_call_keys import CallKeys
from fuzzing.migrate.recorders.torch_constructors import ConstructorCall, ConstructorRecorder
from fuzzing.torch_api.names import UNINITIALIZED, function_names
from fuzzing.torch_api.serializer import InitSerializer, NotSerializableError, Serializer

#: Instances kept of one operator in one process: whoever draws its scalars at random has seen enough then.
MAX_INSTANCES = 4096
#: From which a test that seeds nothing draws, so that recording it again finds the same cases.
SEED = 0
#: Modules that draw random numbers in eval mode too.
_ALWAYS_RANDOM = frozenset({"torch.nn.FractionalMaxPool2d", "torch.nn.FractionalMaxPool3d"})
#: torch's own code that stands for a test: what its databases of operators call is to be recorded.
_TESTS = "torch.testing._internal."


_NO_TEXT = "a call has no form as text"


class _Call(NamedTuple):
    """A call of a function, or of a module with its constructor call in `made`."""

    key: Hashable
    api: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    made: ConstructorCall | None = None
    training: bool = False


@register_recorder
class TorchRecorder:
    """Records the calls of torch, in the thread that imported it."""

    library: ClassVar[str] = "torch"

    def __init__(self) -> None:
        self._making = ConstructorRecorder()
        self._names = function_names()
        self._keys = CallKeys()
        self._known: set[Hashable] = set()
        self._count: dict[str, int] = {}
        self._version = version("torch")
        self._thread = threading.get_ident()
        # While a call is being recorded, or a module of torch.nn is at work, what is called is no test's.
        self._inside = False
        self._mode = _mode(self)
        _c()  # an older torch may lack some: better now than within a test

    def start(self, sink: Sink) -> None:
        """Starts recording to `sink`."""
        import torch

        self._sink = sink
        torch.default_generator.manual_seed(SEED)
        self._making.begin()
        self._watch_modules()
        self._exclude_comparisons()
        self._mode.__enter__()  # for as long as the process lives

    def forget(self) -> None:
        """Clears all keys: repeated calls are recorded again."""
        self._known.clear()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Context without recording."""
        was, self._inside = self._inside, True
        left = self._pop_mode()
        try:
            yield
        finally:
            self._inside = was
            self._push_mode(left)

    def _pop_mode(self) -> bool:
        """Removes our mode, if it is the innermost one, so that calls run at full speed."""
        depth = _c().len_torch_function_stack()
        if depth and _c().get_function_stack_at(depth - 1) is self._mode:
            _c().pop_torch_function_stack()
            return True
        return False

    def _push_mode(self, left: bool) -> None:
        if left:
            _c().push_on_torch_function_stack(self._mode)

    def _watch_modules(self) -> None:
        import torch

        original: Callable[..., Any] = torch.nn.Module.__call__
        compiling, classes, record = torch.compiler.is_compiling, self._making.classes, self.module

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if compiling() or type(self) not in classes:
                return original(self, *args, **kwargs)
            return record(original, self, args, kwargs)

        torch.nn.Module.__call__ = __call__  # type: ignore[method-assign]

    def _exclude_comparisons(self) -> None:
        """Disables recording in `torch.testing.assert_close`, whose many small calls are not the test's."""
        from torch.testing import _comparison

        original: Callable[..., Any] = _comparison.not_close_error_metas

        @functools.wraps(original)
        def not_close_error_metas(*args: Any, **kwargs: Any) -> Any:
            with self.paused():
                return original(*args, **kwargs)

        _comparison.not_close_error_metas = not_close_error_metas

    # -- calls -----------------------------------------------------------------------------------

    def function(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls `func`, and records that if it is an operator whose arguments are new."""
        api = self._names.get(func)
        if api is None or self._inside:
            return func(*args, **kwargs)
        key = (api, self._keys.of(args), self._keys.of(kwargs) if kwargs else None)
        if key in self._known or not self._is_test_call(func, api):
            return func(*args, **kwargs)
        return self._record(_Call(key, api, args, kwargs), lambda: func(*args, **kwargs))

    def module(
        self, original: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Calls a module of torch.nn, and records that if it, or its arguments, are new."""
        if self._inside or threading.get_ident() != self._thread:
            return original(module, *args, **kwargs)
        call = self._module_call(module, args, kwargs)
        self._inside = True
        left = self._pop_mode()
        try:
            if call is None:
                return original(module, *args, **kwargs)
            return self._record(call, lambda: original(module, *args, **kwargs))
        finally:
            self._inside = False
            self._push_mode(left)

    def _module_call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
        made = self._making.made(module)
        if made is None:
            return None
        if made.key is None:
            made.key = (made.api, self._keys.of(made.args), self._keys.of(made.kwargs))
        key = (made.key, self._keys.of(args), self._keys.of(kwargs) if kwargs else None)
        if key in self._known or _is_tracing() or self._has_enough_instances(made.api):
            return None
        return _Call(key, made.api, args, kwargs, made, module.training)

    def _is_test_call(self, func: Any, api: str) -> bool:
        """Whether a call is the test's own and can be serialized; checked only for new keys."""
        if threading.get_ident() != self._thread or _is_tracing() or self._has_enough_instances(api):
            return False
        own = getattr(func, "__code__", None)
        frame = sys._getframe(3)  # of whoever called torch: between us are `function` and the mode
        while frame.f_back and (frame.f_globals.get("__name__") == "torch.overrides" or frame.f_code is own):
            frame = frame.f_back
        name = str(frame.f_globals.get("__name__", ""))
        return not name.startswith("torch.") or name.startswith(_TESTS)

    def _has_enough_instances(self, api: str) -> bool:
        if self._count.get(api, 0) < MAX_INSTANCES:
            return False
        self._sink.skip(api, f"more than {MAX_INSTANCES} instances of one operator")
        return True

    # -- recording -------------------------------------------------------------------------------

    def _record(self, call: _Call, run: Callable[[], Any]) -> Any:
        """Runs a new call, serialized before and stored after it. Its exceptions propagate."""
        self._known.add(call.key)
        was, self._inside = self._inside, True
        begin = perf_counter()
        try:
            recorded = self._serialize_call(call)
            state = _random_state()
            called = perf_counter()
            try:
                self._inside = was
                result = run()
            except BaseException:
                self._known.discard(call.key)  # it may yet succeed, on other elements
                raise
            finally:
                self._inside = True
                ended = perf_counter()
            drew = state != _random_state()
            self._sink.spent(called - begin + perf_counter() - ended)
            if recorded is not None and _holds_tensor(result):
                self._store_case(recorded, call, drew=drew)
            return result
        finally:
            self._inside = was

    def _serialize_call(self, call: _Call) -> tuple[TorchCall, Serializer] | None:
        given = self._making.given
        serializer, maker = Serializer(made=given, redraw=True), InitSerializer(made=given)
        try:
            init = None
            if call.made is not None:
                init = Init(maker.args(call.made.args), maker.kwargs(call.made.kwargs))
            program = TorchCall(call.api, serializer.args(call.args), serializer.kwargs(call.kwargs), init)
        except NotSerializableError as error:
            self._sink.skip(call.api, str(error), error.detail)
        except CaseFormatError as error:
            self._sink.skip(call.api, _NO_TEXT, str(error))
        except Exception:  # noqa: BLE001 - ours; kept from the test, and raised where the record is read
            self._sink.bug(call.api)
        else:
            return program, serializer
        return None

    def _store_case(self, recorded: tuple[TorchCall, Serializer], call: _Call, *, drew: bool) -> None:
        program, serializer = recorded
        # A module is replayed in eval mode, where what it drew in training is not drawn.
        random = drew and (not call.training or call.api in _ALWAYS_RANDOM)
        comparison: Comparison = "shapes" if random or call.api in UNINITIALIZED else "values"
        operator = call.api.removeprefix("torch.")
        self._count[call.api] = self._count.get(call.api, 0) + 1
        try:
            provenance = Provenance(SOURCE, self._sink.test(), operator, "torch", self._version)
            inputs = tuple(serializer.inputs.items())
            self._sink.case(TestCase(program, inputs, provenance, comparison=comparison))
        except CaseFormatError as error:  # found as the program is spelled out
            self._sink.skip(call.api, _NO_TEXT, str(error))
        except Exception:  # noqa: BLE001 - ours; kept from the test, and raised where the record is read
            self._sink.bug(call.api)


class _Internals(NamedTuple):
    """The parts of torch's internals used at each call."""

    len_torch_function_stack: Callable[[], int]
    get_function_stack_at: Callable[[int], Any]
    pop_torch_function_stack: Callable[[], Any]
    push_on_torch_function_stack: Callable[[Any], None]
    len_torch_dispatch_stack: Callable[[], int]
    get_tracing_state: Callable[[], Any]
    peek_interpreter_stack: Callable[[], Any]


@functools.cache
def _c() -> _Internals:
    import torch

    c: Any = torch._C
    return _Internals(
        c._len_torch_function_stack,
        c._get_function_stack_at,
        c._pop_torch_function_stack,
        c._push_on_torch_function_stack,
        c._len_torch_dispatch_stack,
        c._get_tracing_state,
        c._functorch.peek_interpreter_stack,
    )


def _is_tracing() -> bool:
    """Whether tensors are not real now: fake, traced, or batched by functorch."""
    c = _c()
    return bool(
        c.len_torch_dispatch_stack()
        or c.get_tracing_state() is not None
        or c.peek_interpreter_stack() is not None
    )


def _mode(recorder: TorchRecorder) -> Any:
    """The mode that passes every call to `recorder`. Its class is made here: torch is imported only now."""
    import torch

    compiling, function = torch.compiler.is_compiling, recorder.function

    class Recording(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if compiling():  # Dynamo reads this method: it must find nothing but the call
                return func(*args, **(kwargs or {}))
            return function(func, args, kwargs or {})

    return Recording()


def _random_state() -> bytes:
    import torch

    return torch.default_generator.get_state().numpy().tobytes()


def _holds_tensor(result: Any) -> bool:
    """Whether a call returned a tensor: calls that return numbers or types are queries, not operators."""
    import torch

    if isinstance(result, torch.Tensor):
        return True
    if isinstance(result, dict):
        return any(map(_holds_tensor, result.values()))
    return isinstance(result, (list, tuple)) and any(map(_holds_tensor, result))
