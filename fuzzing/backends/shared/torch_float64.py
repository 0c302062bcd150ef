"""Runs a torch program in float64: every narrower float is widened where it appears.

The library's own error can only be measured against a more exact result. A dispatch mode receives every
operator below Python, also inside composite functions. Imported in the worker, by functions, so that torch is
imported late.
"""

from __future__ import annotations

from typing import Any, Dict

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_WIDE: Dict[torch.dtype, torch.dtype] = {
    **{
        getattr(torch, name): torch.float64
        for name in (
            "float32",
            "float16",
            "bfloat16",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
            "float8_e8m0fnu",
        )
        if hasattr(torch, name)
    },
    torch.complex64: torch.complex128,
    torch.complex32: torch.complex128,
}


def widen_tensor(value: Any) -> Any:
    """A narrow tensor as float64 or complex128, strides kept where it is dense; anything else unchanged."""
    if isinstance(value, (list, tuple)):
        return type(value)(widen_tensor(item) for item in value)
    if isinstance(value, torch.Tensor) and value.dtype in _WIDE:
        return value.to(_WIDE[value.dtype])
    return value


class WidenMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within it narrow tensors and `dtype` arguments become wide, and so does the default dtype.

    Operators that draw random numbers draw in the requested type, so that both runs get the same numbers, and
    are widened afterwards. `view(dtype)` reinterprets bits and is left alone: such a program has no meaning
    in another precision.
    """

    def __enter__(self) -> Any:
        self._default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> Any:
        torch.set_default_dtype(self._default)
        return super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        """One operator, in double precision."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags:
            return self._draw(func, args, kwargs)
        if func is not torch.ops.aten.view.dtype:
            args, kwargs = _map(args, _wide), {key: _map(item, _wide) for key, item in kwargs.items()}
        return _map(func(*args, **kwargs), _wide_result)

    def _draw(self, func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
        """Runs a random operator as the native run would."""
        if any(argument.name == "dtype" for argument in func._schema.arguments):
            kwargs = {**kwargs, "dtype": kwargs.get("dtype") or self._native_dtype(func, args)}
        if not func._schema.is_mutable:
            return _map(func(*_map(args, _narrow), **_map(kwargs, _narrow)), _wide_result)
        target, *rest = args
        drawn = _narrow(target).clone()
        func(drawn, *_map(rest, _narrow), **kwargs)
        target.copy_(drawn)
        return target

    def _native_dtype(self, func: Any, args: Any) -> Any:
        """The operator's result type by itself; None if it is a tensor's or an integer type."""
        takes_tensor = any(isinstance(argument, torch.Tensor) for argument in args)
        integral = "randint" in func._schema.name or "randperm" in func._schema.name
        return None if takes_tensor or integral else self._default


def _map(value: Any, change: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    return change(value)


def _wide(value: Any) -> Any:
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else widen_tensor(value)


def _wide_result(value: Any) -> Any:
    return widen_tensor(value)


def _narrow(value: Any) -> Any:
    """A float64 tensor as float32, in which most programs draw."""
    return (
        value.to(torch.float32) if isinstance(value, torch.Tensor) and value.dtype == torch.float64 else value
    )
