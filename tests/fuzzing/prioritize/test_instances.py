from __future__ import annotations

import json
from typing import Any

import onnx
import pytest
from hypothesis import given
from onnx import TensorProto, helper

from fuzzing.cases import (
    Absent,
    EquivalentPair,
    Init,
    KerasLayer,
    OnnxModel,
    Program,
    Provenance,
    Recipe,
    Sequence,
    Tensor,
    TensorArg,
    TestCase,
    TorchCall,
    TorchProgram,
)
from fuzzing.errors import UsageError
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.instances import Instance, extract_instance, read_instances
from tests.fuzzing.prioritize.prioritize_kit import generate_instances, instance

SIGNATURES = ApiSignatures()
X = Tensor("float32", (2, 3), bytes(24))
REPORTED = {"tensor": ["float32", [2, 3]]}


def _told(program: Program, operator: str = "", **inputs: Any) -> Instance:
    provenance = Provenance("toy", "test", operator, "library", "1")
    return extract_instance(TestCase(program, tuple(inputs.items()), provenance), SIGNATURES)


def _node(op_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, outputs, **attributes)


def _model(nodes: list[onnx.NodeProto], inputs: dict[str, list[int]], outputs: list[str]) -> OnnxModel:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    return OnnxModel(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )


def test_a_call_of_torch() -> None:
    call = TorchCall("torch.add", (TensorArg("x"), TensorArg("y", layout="sparse_coo")), (("alpha", 2.5),))
    found = _told(call, x=X, y=Recipe("constant", "int8", (4,), 1, 0, 0))
    assert (found.operator, found.frontend, found.source) == ("torch.add", "torch", "toy")
    assert dict(found.parameters) == {
        "input": REPORTED, "other": {"tensor": ["int8", [4]], "layout": "sparse_coo"}, "alpha": 2.5
    }  # fmt: skip
    assert found.explicit == ("input", "other", "alpha")


def test_a_module_of_torch_has_the_parameters_of_its_making_and_of_its_call() -> None:
    call = TorchCall("torch.nn.Conv2d", (TensorArg("x"),), init=Init((3, 8, (3, 1)), (("bias", False),)))
    parameters = dict(_told(call, x=X).parameters)
    assert list(parameters) == [
        "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias",
        "padding_mode", "device", "dtype", "input",
    ]  # fmt: skip
    assert (parameters["kernel_size"], parameters["bias"], parameters["input"]) == (
        {"tuple": [3, 1]},
        False,
        REPORTED,
    )


def test_a_layer_of_keras() -> None:
    declared = TensorArg("x", dtype="float32", shape=(2, 3))
    found = _told(KerasLayer("keras.layers.Dense", (("units", 4),), (declared,)), x=X)
    assert (found.operator, found.explicit) == ("keras.layers.Dense", ("units", "inputs"))
    assert (dict(found.parameters)["units"], dict(found.parameters)["inputs"]) == (4, REPORTED)


def test_a_program_of_torch_has_the_operator_that_it_is_about() -> None:
    found = _told(TorchProgram("def forward(x):\n    return x\n"), "torch.sin", x=X)
    assert (found.operator, found.parameters) == ("torch.sin", (("x", REPORTED),))


def test_pairs_of_one_call_by_two_rules_differ() -> None:
    side = TorchProgram("def forward(x):\n    return x\n")
    found = [_told(EquivalentPair(side, side, rule), "torch.sin", x=X) for rule in ("vmap", "views")]
    assert [one.operator for one in found] == ["torch.sin", "torch.sin"]
    assert [dict(one.parameters)["equivalence rule"] for one in found] == ["vmap", "views"]


def test_a_node_of_onnx_has_inputs_attributes_and_outputs() -> None:
    model = _model([_node("Clip", ["x", "", "m"], ["y"])], {"x": [2, 3], "m": []}, ["y"])
    found = _told(model, "Clip", x=X, m=Tensor("float32", (), bytes(4)))
    assert found.parameters == (
        ("input", REPORTED), ("min", None), ("max", {"tensor": ["float32", []]}),
        ("output.output", {"tensor": ["float32", []]}),
    )  # fmt: skip
    assert found.explicit == ("input", "max")


def test_constants_are_passed_over_and_defaults_come_from_the_schema() -> None:
    constant = _node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(X.array()))
    found = _told(_model([constant, _node("Gemm", ["x", "c"], ["y"], transB=1)], {"x": [2, 3]}, ["y"]), x=X)
    parameters = dict(found.parameters)
    assert (found.operator, parameters["A"], parameters["B"], parameters["C"]) == (
        "Gemm",
        REPORTED,
        REPORTED,
        None,
    )
    assert (parameters["alpha"], parameters["transA"], parameters["transB"]) == (1.0, 0, 1)
    assert found.explicit == ("A", "B", "transB")


def test_a_variadic_input_is_a_list_and_a_sequence_too() -> None:
    found = _told(
        _model([_node("Concat", ["x", "z"], ["y"], axis=0)], {"x": [2, 3], "z": [2, 3]}, ["y"]), x=X, z=X
    )
    assert dict(found.parameters)["inputs"] == [REPORTED, REPORTED]
    given = _told(TorchProgram("def forward(x):\n    return x\n"), s=Sequence((X,)), a=Absent())
    assert given.parameters == (("s", [REPORTED]), ("a", None))


def test_a_function_that_was_expanded_keeps_its_operator() -> None:
    nodes = [_node("Exp", ["x"], ["e"]), _node("Abs", ["e"], ["y"])]
    found = _told(_model(nodes, {"x": [2, 3]}, ["y"]), "Celu", x=X)
    assert (found.operator, dict(found.parameters)["body"], dict(found.parameters)["x"]) == (
        "Celu",
        "Exp Abs",
        REPORTED,
    )


def test_bytes_that_are_no_model_tell_nothing() -> None:
    assert _told(OnnxModel(b"1"), "Relu").parameters == ()


@given(instances=generate_instances())
def test_an_instance_survives_a_line(instances: list[Instance]) -> None:
    lines = [json.dumps({"id": one.id, "instance": one.to_json()}) for one in instances]
    assert list(read_instances(iter(lines))) == instances
    assert [Instance.from_json(json.loads(json.dumps(one.to_json()))) for one in instances] == instances


def test_a_catalogue_has_other_lines_and_old_ones() -> None:
    lines = ['{"id": "ab", "operator": "Add"}', '{"library": "onnx 1", "skipped": {}}']
    assert list(read_instances(iter(lines))) == [Instance("ab", "Add", (), "")]


@pytest.mark.parametrize("damage", ["operator", "parameters", "explicit", "id"])
def test_what_is_no_instance_is_refused(damage: str) -> None:
    obj = instance(1, a=1).to_json()
    for broken in ({key: value for key, value in obj.items() if key != damage}, obj | {damage: 7}):
        with pytest.raises(UsageError, match="instance"):
            Instance.from_json(broken)
    with pytest.raises(UsageError, match="not JSON"):
        list(read_instances(iter(["{"])))
