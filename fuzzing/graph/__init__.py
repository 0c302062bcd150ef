"""The operator graph, the operators' specifications, and the ways in and out: ONNX and torch source."""

from fuzzing.graph.ir import Attribute, Body, Builder, Constant, Graph, Node
from fuzzing.graph.types import TensorType

__all__ = ["Attribute", "Body", "Builder", "Constant", "Graph", "Node", "TensorType"]
