"""The operator graph, the operators' specifications, and the ways in and out: ONNX and torch source."""

from fuzzing.graph.ir import Attribute, Builder, Constant, Graph, Node, Subgraph
from fuzzing.graph.types import TensorType

__all__ = ["Attribute", "Builder", "Constant", "Graph", "Node", "Subgraph", "TensorType"]
