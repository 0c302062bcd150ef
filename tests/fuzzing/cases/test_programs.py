"""The text forms of programs: one spelling each, hostile ones refused, nothing run."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import (
    Device,
    Dtype,
    Init,
    KerasLayer,
    Name,
    NewObject,
    OnnxModel,
    TensorArg,
    TorchCall,
    TorchProgram,
)
from fuzzing.cases.argument_reader import argument_from_json
from fuzzing.cases.argument_text import render
from fuzzing.cases.arguments import MAX_DEPTH, argument_to_json
from fuzzing.cases.canonical_json import MAX_BYTES
from fuzzing.cases.programs import get_kind
from fuzzing.errors import CaseFormatError
from tests.fuzzing.cases.programs_strategies import arguments, calls, layers

X = TensorArg("x")
CALL = TorchCall("torch.add", (X, 1.5), (("alpha", 2),))
KERAS_X = TensorArg("x", dtype="float32", shape=(2, 3))


@given(calls)
def test_calls_round_trip_byte_for_byte(call: TorchCall) -> None:
    data = call.to_bytes()
    again = TorchCall.from_bytes(data)
    assert (again, hash(again), again.to_bytes()) == (call, hash(call), data)


@given(layers)
def test_layers_round_trip_byte_for_byte(layer: KerasLayer) -> None:
    data = layer.to_bytes()
    again = KerasLayer.from_bytes(data)
    assert (again, hash(again), again.to_bytes()) == (layer, hash(layer), data)


@given(arguments)
def test_arguments_survive_with_their_types(argument: Any) -> None:
    text = json.dumps(argument_to_json(argument))
    again = argument_from_json(json.loads(text))
    assert type(again) is type(argument)
    assert json.dumps(argument_to_json(again)) == text  # NaN equals itself as text only
    assert render(again) == render(argument)


@given(calls)
def test_the_source_is_python_that_defines_make_and_arrange(call: TorchCall) -> None:
    body = ast.parse(call.source()).body
    assert [node.name for node in body if isinstance(node, ast.FunctionDef)][-2:] == ["make", "arrange"]


@given(layers)
def test_the_source_of_a_layer_is_python_too(layer: KerasLayer) -> None:
    body = ast.parse(layer.source()).body
    assert [node.name for node in body if isinstance(node, ast.FunctionDef)][-2:] == ["make", "arrange"]


@given(st.text(max_size=30), st.sampled_from(["api", "tensor", "dtype", "name", "new", "kwarg"]))
def test_only_dotted_identifiers_reach_the_source(text: str, place: str) -> None:
    """Whatever a hostile file says, each name in the text is one of the words it may be."""
    makers: dict[str, Callable[[], TorchCall]] = {
        "api": lambda: TorchCall(text, (X,)),
        "tensor": lambda: TorchCall("torch.abs", (TensorArg(text),)),
        "dtype": lambda: TorchCall("torch.abs", (Dtype(text),)),
        "name": lambda: TorchCall("torch.abs", (Name(text),)),
        "new": lambda: TorchCall("torch.abs", (NewObject(text),)),
        "kwarg": lambda: TorchCall("torch.abs", (X,), ((text, 1),)),
    }
    try:
        source = makers[place]().source()
    except CaseFormatError:
        return
    assert text.isascii()
    assert text.replace(".", "").isidentifier()
    ast.parse(source)


@pytest.mark.parametrize(
    "api", ["os.system", "torch", "torch.", "torch.a-b", "torch.if", "torch.x()", "torch .x", "torchx.y", ""]
)
def test_what_is_no_name_below_torch_is_refused(api: str) -> None:
    with pytest.raises(CaseFormatError, match="not a dotted name below torch"):
        TorchCall(api)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"api": "torch.abs"}',
        b"[" * 100_000,
        b'{"api":"torch.abs","args":[],"init":null,"kwargs":{},"seed":0}',  # another spelling
        b'{\n "api": "torch.abs",\n "args": [NaN],\n "init": null,\n "kwargs": {},\n "seed": 0\n}\n',
        b'{\n "api": "torch.abs",\n "args": [],\n "args": [],\n "init": null,\n "kwargs": {},\n "seed": 0}\n',
        b" " * (MAX_BYTES + 1),
    ],
    ids=range(10),
)
def test_hostile_files_are_refused(text: bytes) -> None:
    with pytest.raises(CaseFormatError):
        TorchCall.from_bytes(text)


@pytest.mark.parametrize(
    "argument",
    [
        {"tensor": "import os"},
        {"tensor": "x", "strides": [-1]},
        {"tensor": "x", "strides": [2**40]},
        {"tensor": "x", "offset": 3},
        {"tensor": "x", "offset": True},
        {"tensor": "x", "layout": "jagged"},
        {"tensor": "x", "layout": ["strided"]},
        {"tensor": "x", "layout": "sparse_coo", "strides": [1]},
        {"tensor": "x", "shape": [2**40]},
        {"tensor": "x", "data": 1},
        {"tensor": ["x"]},
        {"float": "1.5"},
        {"float": 1.5},
        {"complex": [1.0]},
        {"complex": [1, 2]},
        {"slice": [None]},
        {"ellipsis": False},
        {"ellipsis": 1},
        {"tuple": [], "dict": []},
        {"tuple": {}},
        {"dict": [["a", 1], ["a", 2]]},
        {"dict": [[1, 1]]},
        {"dtype": "float32()"},
        {"device": "cpu; import os"},
        {"name": "os.system"},
        {"new": "os.system", "args": [], "kwargs": {}},
        {"new": "torch.nn.ReLU"},
        {"unknown": 1},
        {},
        2**64,
        "\ud800",
    ],
    ids=str,
)
def test_hostile_arguments_are_refused(argument: Any) -> None:
    with pytest.raises(CaseFormatError):
        argument_from_json(argument)


def test_arguments_nest_only_so_deep() -> None:
    deep: Any = None
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    with pytest.raises(CaseFormatError, match="nest deeper"):
        argument_from_json(deep)
    with pytest.raises(CaseFormatError, match="nest deeper"):
        TorchCall("torch.abs", (deep,)).to_bytes()


def test_a_value_without_a_form_is_refused_by_its_type() -> None:
    with pytest.raises(CaseFormatError, match="type set cannot be written"):
        TorchCall("torch.abs", ({1, 2},)).to_bytes()


def test_types_that_python_takes_for_equal_are_told_apart() -> None:
    calls_ = [TorchCall("torch.add", (X, value)) for value in (1, 1.0, True, 1 + 0j, -0.0, 0.0, math.nan)]
    assert len({call.to_bytes() for call in calls_}) == len(calls_)
    assert TorchCall("torch.add", (X, math.nan)) == TorchCall("torch.add", (X, math.nan))


def test_the_order_of_keyword_arguments_does_not_matter() -> None:
    one, other = (
        TorchCall("torch.add", (X,), kwargs) for kwargs in ((("b", 1), ("a", 2)), (("a", 2), ("b", 1)))
    )
    assert one.to_bytes() == other.to_bytes()


def test_one_input_has_one_description() -> None:
    with pytest.raises(CaseFormatError, match="'x' is described in two ways"):
        TorchCall("torch.add", (X, TensorArg("x", (1,))))
    assert TorchCall("torch.add", (X, X)).tensors == (X,)


def test_inputs_come_in_the_order_in_which_they_appear() -> None:
    call = TorchCall("torch.cat", ([TensorArg("b"), {"k": TensorArg("a")}],), (("out", TensorArg("c")),))
    assert [tensor.name for tensor in call.tensors] == ["b", "a", "c"]


def test_a_module_is_not_made_from_inputs() -> None:
    with pytest.raises(CaseFormatError, match="cannot be made from inputs"):
        Init((X,))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (CALL, "torch.add(x, 1.5, alpha=2)"),
        (TorchCall("torch.Tensor.view", (X, 2, -1)), "x.view(2, -1)"),
        (TorchCall("torch.Tensor.mT", (X,)), "x.mT"),
        (TorchCall("torch.Tensor.__getitem__", (X, (slice(None, 2), ...))), "x[:2, ...]"),
        (TorchCall("torch.Tensor.__getitem__", (X, slice(1, None, 2))), "x[slice(1, None, 2)]"),
        (TorchCall("torch.Tensor.__getitem__", (X, (0,))), "x[0,]"),
        (TorchCall("torch.randint", (), (("from", 1), ("to", 2))), "torch.randint(to=2, **{'from': 1})"),
        (TorchCall("torch.full", ((2,), math.inf)), 'torch.full((2,), float("inf"))'),
        (TorchCall("torch.abs", (X, Device("cpu"))), "torch.abs(x, torch.device(DEVICE))"),
        (TorchCall("torch.abs", (X, Name("torch.relu"))), "torch.abs(x, torch.relu)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_call_reads_as_a_person_would_write_it(call: TorchCall, line: str) -> None:
    assert f"        return {line}\n" in call.source()


def test_a_call_is_readable_in_a_diff() -> None:
    call = TorchCall("torch.nn.Conv2d", (TensorArg("x", (75, 25, 5, 1), 1),), (), Init((3, 4, (3, 3))), 7)
    assert call.to_bytes().decode() == (
        "{\n"
        ' "api": "torch.nn.Conv2d",\n'
        ' "args": [{"offset": 1, "strides": [75, 25, 5, 1], "tensor": "x"}],\n'
        ' "init": {"args": [3, 4, {"tuple": [3, 3]}], "kwargs": {}},\n'
        ' "kwargs": {},\n'
        ' "seed": 7\n'
        "}\n"
    )


# TorchProgram ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "x = 1", "def forward(x:", "def forward(x):\n    return x\n\x00", "(" * 5000, "#" * (1 << 21)],
    ids=range(6),
)
def test_text_that_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(CaseFormatError, match=r"program\.py"):
        TorchProgram(text)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(CaseFormatError, match="not UTF-8"):
        TorchProgram.from_bytes(b"\xff\xfe")


def test_a_program_is_parsed_and_not_run(tmp_path: Any) -> None:
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'w')\ndef forward(x):\n    return x\n"
    program = TorchProgram.from_bytes(text.encode())
    ast.parse(program.source())
    assert program.to_bytes() == text.encode()
    assert not mark.exists()


def test_a_program_keeps_its_own_seed_and_arrangement() -> None:
    text = "SEED = 5\nclass Model:\n    pass\ndef arrange(inputs):\n    return []\n"
    source = TorchProgram(text).source()
    assert source.startswith(text.rstrip())
    assert source.count("SEED = ") == 1
    assert source.count("def arrange(") == 1


# KerasLayer ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: KerasLayer("keras.layers.Dense"), "at least one input"),
        (lambda: KerasLayer("keras.layers.Dense", (), (X,)), "needs its dtype and its shape"),
        (lambda: KerasLayer("tf.keras.layers.Dense", (), (KERAS_X,)), "not a dotted name below keras"),
        (lambda: KerasLayer("keras.ops.abs", (), (KERAS_X,), (("training", True),)), "is a function"),
        (lambda: KerasLayer("keras.layers.ReLU", (), (KERAS_X,), (), -1), "seed"),
        (
            lambda: KerasLayer("keras.ops.abs", (), (TensorArg("x", (1, 1), dtype="float32", shape=(2, 3)),)),
            "neither strides",
        ),
    ],
)
def test_layers_without_meaning_are_refused(make: Any, why: str) -> None:
    with pytest.raises(CaseFormatError, match=why):
        make()


def test_a_widened_layer_names_double_precision_wherever_it_named_less() -> None:
    inner = NewObject("keras.layers.LSTM", (3,), (("dtype", "float16"),))
    layer = KerasLayer("keras.layers.Bidirectional", (("layer", inner), ("dtype", "float32")), (KERAS_X,))
    wide = layer.widened()
    assert b"float32" not in wide.to_bytes()
    assert b"float16" not in wide.to_bytes()
    assert wide.tensors == (TensorArg("x", dtype="float64", shape=(2, 3)),)


@pytest.mark.parametrize("kind", [OnnxModel, TorchCall, TorchProgram, KerasLayer])
def test_every_kind_is_known_by_its_name(kind: Any) -> None:
    assert get_kind(kind.kind) is kind
