"""Operator graphs, operator specifications, and conversion to and from ONNX and torch source."""

from fuzzing.graph.ir import Attribute, Builder, Constant, Graph, Node, Subgraph
from fuzzing.graph.types import TensorType

__all__ = ["Attribute", "Builder", "Constant", "Graph", "Node", "Subgraph", "TensorType"]
