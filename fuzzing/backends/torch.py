"""PyTorch itself, uncompiled, as what is tested: by pairs of equivalent programs, which need no reference."""

from __future__ import annotations

from typing import ClassVar, Tuple

from fuzzing.backends.base import UnsupportedPattern, register
from fuzzing.backends.torch_eager import TorchEager


@register
class Torch(TorchEager):
    """Runs both programs of a pair; a side may itself call an optimizer such as torch.compile.

    options: those of torch_eager.
    """

    name: ClassVar[str] = "torch"
    kinds: ClassVar[Tuple[str, ...]] = ("EquivalentPair",)
    reference: ClassVar[bool] = False
    unsupported: ClassVar[Tuple[UnsupportedPattern, ...]] = (
        *TorchEager.unsupported,
        UnsupportedPattern("RuntimeError", r"(Batching rule not implemented for [\w:]+)", r"\1"),
        UnsupportedPattern("RuntimeError", r"\A(vmap(?:: | over )[^\n.]*)", r"\1"),
        UnsupportedPattern("RuntimeError", r"\A(When vmap-ing [^\n,]*)", r"\1"),
        UnsupportedPattern(
            "RuntimeError", r"derivative for (aten::\w+) is not implemented", r"\1 has no derivative"
        ),
        UnsupportedPattern(
            "RuntimeError",
            r"(does not support automatic differentiation|is not differentiable when)",
            r"it \1",
        ),
        UnsupportedPattern("RuntimeError", r"Unsupported memory format", r"not this memory format"),
        UnsupportedPattern(
            "RuntimeError", r"unsupported tensor layout: (\w+)", r"it has no kernel for the layout \1"
        ),
    )
