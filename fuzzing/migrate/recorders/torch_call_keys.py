"""Cheap keys of live arguments, equal for equal operator instances. This is the hot path."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any


class CallKeys:
    """Makes keys; created after torch is imported, because it uses torch's types.

    A tensor's key is its type, shape and, unless it is contiguous, strides. Numbers keep their types, as 1,
    1.0 and True would be one key.
    """

    def __init__(self) -> None:
        import torch

        self._kinds: dict[type, Callable[[Any], Hashable]] = {
            torch.Tensor: _tensor,
            torch.nn.Parameter: _tensor,
            tuple: lambda value: (tuple, *map(self.of, value)),
            list: lambda value: (list, *map(self.of, value)),
            torch.Size: lambda value: value,
            dict: lambda value: (dict, *((key, self.of(item)) for key, item in value.items())),
            slice: lambda value: (slice, self.of(value.start), self.of(value.stop), self.of(value.step)),
            float: lambda value: (float, value if value == value else "nan"),
            **dict.fromkeys((bool, int, complex), lambda value: (type(value), value)),
            **dict.fromkeys((str, type(None), type(Ellipsis)), lambda value: value),
            **dict.fromkeys((torch.dtype, torch.device, torch.layout, torch.memory_format), lambda v: v),
        }

    def of(self, value: Any) -> Hashable:
        """The key of one argument; of unknown types the type, of callables the name."""
        kind = self._kinds.get(type(value))
        if kind is not None:
            return kind(value)
        return type(value), getattr(value, "__qualname__", None)


def _tensor(tensor: Any) -> Hashable:
    try:
        if tensor.is_contiguous():
            return tensor.dtype, tensor.shape
        return tensor.dtype, tensor.shape, tensor.stride()
    except (RuntimeError, NotImplementedError):  # of a layout without strides
        return tensor.dtype, tensor.shape, tensor.layout
