"""The versions of ONNX's operators that a model uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx.defs
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto, NodeProto


def find_newer_operators(model: bytes, newest: int) -> list[str]:
    """ONNX's own operators that are newer than opset `newest`, as `Gelu-20`, sorted; each once.

    An operator's version is that of the opset that last defined it: Relu is `Relu-14` in opset 20 too. Bodies
    of If, Loop and Scan and local functions count. Empty if the model cannot be read.
    """
    try:
        proto = ModelProto.FromString(model)
    except DecodeError:
        return []
    found = _versions(proto.graph.node, _opsets(proto.opset_import))
    for function in proto.functions:
        found |= _versions(function.node, _opsets(function.opset_import))
    return sorted(f"{name}-{version}" for name, version in found if version > newest)


def _opsets(imported: Iterable[onnx.OperatorSetIdProto]) -> Mapping[str, int]:
    return {"" if one.domain == "ai.onnx" else one.domain: one.version for one in imported}


def _versions(nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> set[tuple[str, int]]:
    """(operator, version) of the nodes in ONNX's default domain; unknown operators are left out."""
    opset = opsets.get("", 1)
    names = {node.op_type for node in _walk(nodes) if node.domain in ("", "ai.onnx")}
    return {
        (name, onnx.defs.get_schema(name, opset, "").since_version)
        for name in names
        if onnx.defs.has(name, opset, "")
    }


def _walk(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _walk(graph.node)
