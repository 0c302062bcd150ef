"""Rewrites of ONNX graphs: each replaces one node by nodes that compute the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import NodeProto

from fuzzing.equivalence.graphs.editor import Editor
from fuzzing.registry import Registry

#: The nodes that replace one node; None if the rewrite does not apply to it.
Apply = Callable[[Editor, NodeProto], "list[NodeProto] | None"]


@dataclass(frozen=True)
class Rewrite:
    """An equality of graphs.

    operators  that it applies to; () for those of any type
    proof      why both sides are equal, in exact arithmetic
    """

    name: str
    operators: tuple[str, ...]
    proof: str
    apply: Apply


_REWRITES: Registry[Rewrite] = Registry("graph rewrite", "fuzzing.equivalence.graphs")


def register_rewrite(name: str, *operators: str, proof: str) -> Callable[[Apply], Apply]:
    """Decorator: registers a function as the rewrite `name`."""

    def register(apply: Apply) -> Apply:
        _REWRITES.add(Rewrite(name, operators, proof, apply), name)
        return apply

    return register


names = _REWRITES.names
get = _REWRITES.get


def applicable(rewrite: Rewrite, node: NodeProto) -> bool:
    """Whether a rewrite is about nodes of this type."""
    return node.domain in ("", "ai.onnx") and (not rewrite.operators or node.op_type in rewrite.operators)
