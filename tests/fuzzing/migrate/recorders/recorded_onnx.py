"""A script, and a test file for pytest, that make ONNX models under the recorder: see test_onnx_recorder."""

from __future__ import annotations

import os
import signal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_graph, make_model, make_node  # by name: recorded all the same

FLOAT = TensorProto.FLOAT
X = helper.make_tensor_value_info("x", FLOAT, ("batch", 3))
W = numpy_helper.from_array(np.ones((3, 4), np.float32), "w")


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, None)


def test_model() -> None:
    nodes = [make_node("MatMul", ["x", "w"], ["h"]), make_node("Relu", ["h"], ["y"])]
    for name in ("two", "again"):
        graph = make_graph(nodes, name, [X], [value("y")], initializer=[W])
        make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name=name)


def test_the_same_node_again() -> None:
    graph = make_graph([make_node("Relu", ["a"], ["b"])], "one", [_renamed("a")], [value("b")])
    make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="another")


def _renamed(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, (2, 4))


def test_graph_without_model() -> None:
    make_graph([make_node("Sqrt", ["x"], ["y"])], "alone", [X], [value("y")])


def test_subgraph() -> None:
    then = make_graph([make_node("Neg", ["x"], ["t"])], "then", [], [value("t")])
    other = make_graph([make_node("Abs", ["x"], ["e"])], "else", [], [value("e")])
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, ())
    node = make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    make_model(make_graph([node], "if", [X, condition], [value("y")]))


def test_random() -> None:
    node = make_node("RandomNormalLike", ["x"], ["y"])
    make_model(make_graph([node], "random", [X], [value("y")]))


def test_what_has_no_form() -> None:
    unknown = helper.make_tensor_value_info("x", FLOAT, None)
    make_model(make_graph([make_node("Relu", ["x"], ["y"])], "rank", [unknown], [value("y")]))
    own = make_node("Mine", ["x"], ["y"], domain="com.example")
    make_model(make_graph([own], "own", [X], [value("y")]))


if __name__ == "__main__":
    test_graph_without_model()
    test_model()
    if "ASSAY_CRASH" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
