"""Faults of a library, and of a compiler, planted in the process of a worker."""

from __future__ import annotations

from typing import Any


def plant(fault: str) -> None:
    """Plants the fault of this name in torch."""
    {"": _nothing, "decomposition": _decomposition, "trace": _trace, "export": _export}[fault]()


def _nothing() -> None:
    pass


def _decomposition() -> None:
    """torch decomposes deg2rad to something else, of another shape."""
    import torch
    from torch._decomp import global_decomposition_table

    def deg2rad(x: Any) -> Any:
        return (x * 3).reshape(1, -1)

    deg2rad.__module__ = "torch._decomp.decompositions"
    global_decomposition_table["post_autograd"][torch.ops.aten.deg2rad.default] = deg2rad


def _wrong(module: Any) -> Any:
    import torch

    class Wrong(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.right = module

        def forward(self, *given: Any, **named: Any) -> Any:
            result = self.right(*given, **named)
            return result * 3 + 1 if result.dim() == 2 else result

    return Wrong().eval()


def _trace() -> None:
    """torch traces another program, of matrices."""
    import torch

    jit: Any = torch.jit
    right = jit.trace
    jit.trace = lambda module, *given, **named: right(_wrong(module), *given, **named)


def _export() -> None:
    """torch exports another program to ONNX, of matrices."""
    import torch

    onnx: Any = torch.onnx
    right = onnx.export
    onnx.export = lambda module, *given, **named: right(_wrong(module), *given, **named)
