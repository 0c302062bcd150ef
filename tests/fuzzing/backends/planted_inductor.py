"""Inductor with a fault planted in each of its layers, every one in an operator of its own.

torch.sin    dynamo captures torch.cos
torch.erf    AOTAutograd is given torch.erfc
silu         decomposed into twice its input
torch.tanh   its derivative is decomposed into 1 - |tanh|
torch.tan    lowered as sin
torch.asin   cannot be lowered
torch.trunc  the graph's backend says what sizes it sees, by an exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from fuzzing.backends.base import register
from fuzzing.backends.inductor import Inductor

Graph = Any  # torch.fx.GraphModule


@register
class PlantedInductor(Inductor):
    """See the head of this file."""

    name: ClassVar[str] = "planted_inductor"

    def load(self, device: str, options: dict[str, Any]) -> None:
        super().load(device, options)
        _plant_in_decompositions()
        _plant_in_lowerings()
        _plant_in_aot_autograd()
        self._torch_backend = _plant_in_dynamo(self._torch_backend)  # type: ignore[assignment] # torch.compile takes both


def _plant_in_dynamo(torch_backend: str) -> Callable[[Graph, Any], Any]:
    import torch
    from torch._dynamo.backends.registry import lookup_backend

    behind = lookup_backend(torch_backend)

    def planted(graph: Graph, inputs: Any) -> Any:
        if any(node.target is torch.trunc for node in graph.graph.nodes):
            symbols = any(isinstance(given, torch.SymInt) for given in inputs)  # dynamo hands them in first
            raise RuntimeError(f"sizes are {'symbols' if symbols else 'numbers'}")
        return behind(_swap(graph, torch.sin, torch.cos), inputs)

    return planted


def _plant_in_aot_autograd() -> None:
    import torch
    from torch._dynamo.backends import common

    module: Any = common  # the name is not among those that it exports
    given = module.aot_module_simplified

    def planted(graph: Graph, *args: Any, **kwargs: Any) -> Any:
        return given(_swap(graph, torch.erf, torch.erfc), *args, **kwargs)

    module.aot_module_simplified = planted


def _plant_in_decompositions() -> None:
    import torch
    from torch._inductor.decomposition import decompositions

    aten = torch.ops.aten
    decompositions[aten.silu.default] = lambda tensor: tensor * 2
    decompositions[aten.tanh_backward.default] = lambda gradient, tanh: gradient * (1 - tanh.abs())


def _plant_in_lowerings() -> None:
    import torch
    from torch._inductor import lowering

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("there is no such thing as an arc sine")

    aten = torch.ops.aten
    lowering.lowerings[aten.tan.default] = lowering.lowerings[aten.sin.default]
    lowering.lowerings[aten.asin.default] = fails


def _swap(graph: Graph, old: Any, new: Any) -> Graph:
    for node in graph.graph.nodes:
        if node.target is old:
            node.target = new
    graph.recompile()
    return graph
