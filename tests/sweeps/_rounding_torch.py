"""Eager torch whose inexact numbers are off by one rounding more, up or down: a compiler that is right.

Compilers fuse, reorder and approximate. What an operation of ATen gives exactly, as its run in float64 shows,
stays exact. Where the others move to is drawn from the number of the operation.
"""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import Named, register
from fuzzing.backends.shared import torch_programs
from fuzzing.backends.torch_eager import TorchEager


@register
class RoundingTorch(TorchEager):
    """See the head of this file."""

    name: ClassVar[str] = "rounding_torch"
    reference: ClassVar[bool] = False

    def run(self, executable: Any, inputs: Named) -> Named:
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils._pytree import tree_leaves, tree_map, tree_structure, tree_unflatten

        def moved(value: Any, exact: Any, generator: Any) -> Any:
            kind = value.dtype if isinstance(value, torch.Tensor) else torch.int8
            if not kind.is_floating_point or kind.itemsize < 2:
                return value
            up = torch.full_like(value, torch.inf)
            towards = torch.where(torch.randint(0, 2, value.shape, generator=generator) > 0, up, -up)
            fixed = ~value.isfinite() | (value == 0) | (value.double() == exact)
            return torch.where(fixed, value, torch.nextafter(value, towards))

        def widened(value: Any) -> Any:
            return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

        class Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
            number = 0

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                kwargs = kwargs or {}
                made = func(*args, **kwargs)
                # A view is no new number, and what is written to in place may be read by its old name.
                if any(one.alias_info is not None for one in func._schema.returns) or func._schema.is_mutable:
                    return made
                self.number += 1
                generator = torch.Generator().manual_seed(self.number)
                try:
                    exact = func(*tree_map(widened, args), **tree_map(widened, kwargs))
                except Exception:  # noqa: BLE001 - whatever an operation says to another type
                    return made
                pairs = zip(tree_leaves(made), tree_leaves(exact), strict=True)
                return tree_unflatten([moved(*pair, generator) for pair in pairs], tree_structure(made))

        built: torch_programs.Built = executable
        with Rounding():  # type: ignore[no-untyped-call]
            return built.run(inputs, self._device)
