"""Bugs planted in the Python of Dynamo and AOTAutograd, each in one documented behaviour.

A plant patches the installed torch for the rest of the process; `planted_bugs` forks one for each.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._dynamo.guards
import torch._dynamo.output_graph
import torch._dynamo.side_effects
import torch._dynamo.symbolic_convert
import torch._dynamo.variables.functions
import torch._dynamo.variables.lists
import torch._functorch._aot_autograd.collect_metadata_analysis
import torch._functorch._aot_autograd.runtime_wrappers
from torch._inductor.decomposition import decompositions

aten: Any = torch.ops.aten
_OTHER_SHAPE = {"dynamic": "auto", "first_call": "shape"}


@dataclass(frozen=True)
class Plant:
    """A planted bug.

    name     what breaks
    install  patches torch
    options  of the inductor backend that runs the mutants
    """

    name: str
    install: Callable[[], None]
    options: Mapping[str, str] = field(default_factory=lambda: {"torch_backend": "eager"})


Nodes = Callable[
    [str, Any, tuple[Any, ...], dict[str, Any]], tuple[str, Any, tuple[Any, ...], dict[str, Any]]
]


def _capture(rewrite: Nodes) -> Callable[[], None]:
    """Dynamo captures a node other than the one that the program says."""

    def install() -> None:
        tracer: Any = torch._dynamo.output_graph.SubgraphTracer
        create_node = tracer.create_node

        def planted(
            self: Any, kind: str, target: Any, args: Any = None, kwargs: Any = None, *rest: Any
        ) -> Any:
            return create_node(self, *rewrite(kind, target, args or (), kwargs or {}), *rest)

        tracer.create_node = planted

    return install


def _call(name: str, change: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, Any, Any]]) -> Nodes:
    """Changes calls of one function or method.

    change  gives the new target (None: the same) and the new arguments
    """

    def rewrite(kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = target if isinstance(target, str) else getattr(target, "__name__", "")
        if kind not in ("call_function", "call_method") or own != name:
            return kind, target, args, kwargs
        other, args, kwargs = change(args, kwargs)
        return kind, target if other is None else other, args, kwargs

    return rewrite


def _decomposition(name: str, formula: Callable[..., Any]) -> Callable[[], None]:
    def install() -> None:
        decompositions[getattr(aten, name).default] = formula

    return install


def _patch(owner: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    def install() -> None:
        setattr(owner, name, make(getattr(owner, name)))

    return install


def _swap_comparisons() -> None:
    handlers = torch._dynamo.symbolic_convert.compare_op_handlers
    handlers["<"], handlers[">"] = handlers[">"], handlers["<"]


def _reverse_cells() -> None:
    """Reverses the cells of closures, in the table by which every translator finds its instructions."""
    place = dis.opmap["MAKE_FUNCTION"]
    translator: Any = torch._dynamo.symbolic_convert.InstructionTranslatorBase
    for one in (translator, *translator.__subclasses__()):
        one.dispatch_table[place] = _reversed_cells(one.dispatch_table[place])


def _reversed_cells(make_function: Any) -> Any:
    def planted(self: Any, inst: Any) -> None:
        closure = self.stack[-2] if inst.arg & 0x08 else None
        if closure is not None and len(closure.items) > 1:
            closure.items = list(reversed(closure.items))
        make_function(self, inst)

    return planted


def _first_write_only(store_cell: Any) -> Any:
    def planted(self: Any, cell: Any, value: Any) -> None:
        if not self.has_pending_mutation_of_attr(cell, "cell_contents"):
            store_cell(self, cell, value)

    return planted


def _short_range(length: Any) -> Any:
    return lambda self: max(0, length(self) - 1) if length(self) > 1 else length(self)


_DYNAMO: Any = torch._dynamo
_AOT: Any = torch._functorch._aot_autograd
_DECOMPOSED = {"torch_backend": "aot_eager_decomp_partition"}

PLANTS = (
    Plant(
        "in-place copy through an index",
        _capture(_call("setitem", lambda a, k: (operator.getitem, a[:2], k))),
    ),
    Plant("in-place copy", _capture(_call("copy_", lambda a, k: ("clone", a[:1], {})))),
    Plant("in-place change of shape", _capture(_call("unsqueeze_", lambda a, k: (None, (a[0], 0), k)))),
    Plant("axis of stack", _capture(_call("stack", lambda a, k: (None, a, {**k, "dim": 0})))),
    Plant("negative axis of transpose", _capture(_call("transpose", lambda a, k: (None, (*a[:2], 1), k)))),
    Plant("order of where's operands", _capture(_call("where", lambda a, k: (None, (a[0], *a[:0:-1]), k)))),
    Plant(
        "element type of empty",
        _capture(_call("empty", lambda a, k: (None, a, {**k, "dtype": torch.float64}))),
    ),
    Plant("result of out=", _capture(_call("add", lambda a, k: (torch.sub if "out" in k else None, a, k)))),
    Plant("ellipsis in an index", _capture(_call("getitem", lambda a, k: (None, (a[0], _first(a[1])), k)))),
    Plant("two concatenated tensors", _capture(_call("cat", lambda a, k: (None, (a[0][::-1], *a[1:]), k)))),
    Plant("exclusive maximum", _capture(_call("amax", lambda a, k: (torch.amin, a, k)))),
    Plant("comparisons of scalars", _swap_comparisons),
    Plant("order of closure cells", _reverse_cells),
    Plant(
        "second write to a cell", _patch(_DYNAMO.side_effects.SideEffects, "store_cell", _first_write_only)
    ),
    Plant("length of a range", _patch(_DYNAMO.variables.lists.RangeVariable, "range_length", _short_range)),
    Plant(
        "guard of a tensor's sizes",
        _patch(_DYNAMO.guards.GuardBuilder, "TENSOR_MATCH", lambda _: lambda *_args, **_kwargs: None),
        {"torch_backend": "eager", "first_call": "shape"},
    ),
    Plant(
        "guard of symbolic sizes",
        _patch(_DYNAMO.guards.GuardBuilder, "SHAPE_ENV", lambda _: lambda *_args, **_kwargs: None),
        {"torch_backend": "eager", "dynamic": "on", "first_call": "shape"},
    ),
    Plant(
        "outputs that are views of inputs",
        _patch(_AOT.runtime_wrappers, "gen_alias_from_base", lambda _: lambda base, *_args, **_kwargs: base),
        {"torch_backend": "aot_eager"},
    ),
    Plant(
        "written inputs",
        _patch(_AOT.collect_metadata_analysis, "has_data_mutation", lambda _: lambda _tensor: False),
        {"torch_backend": "aot_eager"},
    ),
    Plant("decomposition of mish", _decomposition("mish", lambda x: x * torch.tanh(x)), _DECOMPOSED),
    Plant(
        "decomposition of hardswish",
        _decomposition("hardswish", lambda x: x * (x + 3).clamp(0, 6) / 5),
        _DECOMPOSED,
    ),
    Plant(
        "decomposition of leaky_relu",
        _decomposition("leaky_relu", lambda x, slope=0.01: torch.where(x > 0, x, x)),
        _DECOMPOSED,
    ),
    Plant(
        "decomposition of softplus",
        _decomposition("softplus", lambda x, beta=1, threshold=20: x.exp().log()),
        _DECOMPOSED,
    ),
    Plant(
        "decomposition of elu",
        _decomposition("elu", lambda x, *_: torch.where(x > 0, x, x.exp())),
        _DECOMPOSED,
    ),
    Plant(
        "derivative of select",
        _decomposition(
            "select_backward",
            lambda gradient, sizes, axis, _: torch.select_scatter(
                gradient.new_zeros(sizes), gradient, axis, 0
            ),
        ),
        {**_DECOMPOSED, "backward": "on"},
    ),
)


def _first(index: Any) -> Any:
    """An index whose ellipsis means the first element."""
    return tuple(0 if item is Ellipsis else item for item in index) if isinstance(index, tuple) else index
