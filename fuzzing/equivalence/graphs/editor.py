"""The model that rewrites work on: types of its values, new names, constants and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

FLOATS = frozenset({"float16", "float32", "float64"})
DOMAIN = "assay"

#: Arrays by the names of inputs.
Given = Mapping[str, Any]
NOTHING: Given = {}


@dataclass(frozen=True)
class ValueType:
    """An element type by numpy's name, and the shape; None where it is not known before the run."""

    dtype: str
    shape: tuple[int, ...] | None


class Editor:
    """A copy of a model, changed node by node.

    given  values of inputs, by name, as far as they are known
    """

    def __init__(self, model: ModelProto, given: Given = NOTHING) -> None:
        self.given = given
        self.model = ModelProto()
        self.model.CopyFrom(model)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        graph = inferred.graph
        self._types = {
            value.name: _value_type(value) for value in (*graph.input, *graph.value_info, *graph.output)
        }
        self._types |= {
            item.name: ValueType(str(helper.tensor_dtype_to_np_dtype(item.data_type)), tuple(item.dims))
            for item in graph.initializer
        }
        self._names = {name for node in graph.node for name in (*node.input, *node.output)} | set(self._types)
        self.opset: int = next(item.version for item in model.opset_import if item.domain in ("", "ai.onnx"))

    @property
    def nodes(self) -> list[NodeProto]:
        """The graph's nodes, in order."""
        return list(self.model.graph.node)

    def type(self, name: str) -> ValueType:
        """The type of a value; of unknown dtype "" where inference fails."""
        return self._types.get(name, ValueType("", None))

    def is_float(self, name: str) -> bool:
        """Whether a value is of one of ONNX's common float types."""
        return self.type(name).dtype in FLOATS

    def fresh(self, hint: str) -> str:
        """A name that no value has."""
        name = next(name for n in range(len(self._names) + 1) if (name := f"{hint}_{n}") not in self._names)
        self._names.add(name)
        return name

    def constant(self, array: Any, hint: str = "constant") -> str:
        """A new initializer."""
        name = self.fresh(hint)
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def lengths(self, values: Sequence[int]) -> str:
        """A new initializer of int64, as shapes, axes and places are given."""
        return self.constant(np.array(values, np.int64), "lengths")

    def scalar(self, value: float, like: str) -> str:
        """A new initializer of rank 0 and the element type of a value."""
        return self.constant(np.array(value, self.type(like).dtype), "scalar")

    def initializer(self, name: str) -> Any:
        """An initializer's elements; None if the value is no initializer."""
        found = next((item for item in self.model.graph.initializer if item.name == name), None)
        return None if found is None else numpy_helper.to_array(found)

    def add_function(self, function: onnx.FunctionProto) -> None:
        """A function of the model, of the domain DOMAIN."""
        self.model.functions.append(function)
        if all(item.domain != DOMAIN for item in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid(DOMAIN, 1))

    def replace(self, node: NodeProto, new: Iterable[NodeProto]) -> None:
        """Puts nodes in the place of one; they compute its outputs."""
        place = next(at for at, other in enumerate(self.model.graph.node) if other.output == node.output)
        nodes = self.nodes
        nodes[place : place + 1] = added = list(new)
        for item in added:  # copies have their original's name, and names must differ
            item.ClearField("name")
        del self.model.graph.node[:]
        self.model.graph.node.extend(nodes)


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """An attribute's value."""
    found = next((item for item in node.attribute if item.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


def _value_type(value: onnx.ValueInfoProto) -> ValueType:
    if not value.type.HasField("tensor_type"):
        return ValueType("", None)
    tensor = value.type.tensor_type
    known = tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim)
    try:
        dtype = str(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except KeyError:
        dtype = ""
    return ValueType(dtype, tuple(dim.dim_value for dim in tensor.shape.dim) if known else None)
