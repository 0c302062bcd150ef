from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fuzzing.cases import Absent, Corpus, OnnxModel, Sequence, Tensor, TestCase, Value
from fuzzing.errors import UnknownNameError
from fuzzing.graph.case_validity import find_case_violations
from fuzzing.migrate import sources
from fuzzing.migrate.__main__ import main
from fuzzing.migrate.onnx_backend_tests import to_value
from fuzzing.migrate.onnx_wrong_tests import WRONG_TESTS
from fuzzing.migrate.sources import Skip


@pytest.fixture(scope="module")
def migrated() -> list[TestCase | Skip]:
    return list(sources.get("onnx-node-tests").migrate())


@pytest.fixture(scope="module")
def cases(migrated: list[TestCase | Skip]) -> dict[str, TestCase]:
    return {item.provenance.test: item for item in migrated if isinstance(item, TestCase)}


def test_every_test_is_accounted_for(migrated: list[TestCase | Skip], cases: dict[str, TestCase]) -> None:
    from onnx.backend.test.case.node import collect_testcases

    names = [item.test if isinstance(item, Skip) else item.provenance.test for item in migrated]
    assert names == [test.name for test in collect_testcases(None)]
    assert len(cases) > 1500  # 1,884 in ONNX 1.23.2
    assert [item for item in migrated if isinstance(item, Skip)] == []


def test_no_rule_about_operands_forbids_a_test_of_onnx(cases: dict[str, TestCase]) -> None:
    """But for ONNX's function of AffineGrid, whose Range and Unsqueeze have operands of other ranks than
    their pages say, and for two bodies of Loop with an Unsqueeze by a scalar.
    """
    own = re.compile(r"test_affine_grid_.*_expanded|test_loop13_seq|test_loop16_seq_none")
    forbidden = {name: find_case_violations(case) - {"types"} for name, case in cases.items()}
    assert {name: found for name, found in forbidden.items() if found and not own.fullmatch(name)} == {}


def test_provenance(cases: dict[str, TestCase]) -> None:
    for name, case in cases.items():
        prov = case.provenance
        assert (prov.source, prov.library, prov.version) == ("onnx-node-tests", "onnx", onnx.__version__)
        assert prov.test == name
        assert case.tolerance is not None
        assert (case.tolerance.rtol, case.tolerance.atol) == (1e-3, 1e-7)


def test_outputs_that_contradict_the_standard_are_not_expected(cases: dict[str, TestCase]) -> None:
    assert {name for name, case in cases.items() if case.expected is None} == set(WRONG_TESTS)


def _model(case: TestCase) -> onnx.ModelProto:
    assert isinstance(case.program, OnnxModel)
    return onnx.load_model_from_string(case.program.model)


def test_names_are_the_graphs(cases: dict[str, TestCase]) -> None:
    for case in cases.values():
        graph = _model(case).graph
        assert [name for name, _ in case.inputs] == [item.name for item in graph.input]
        if case.provenance.test in WRONG_TESTS:
            continue
        assert case.expected is not None
        assert [name for name, _ in case.expected] == [item.name for item in graph.output]


def test_element_types_are_the_graphs(cases: dict[str, TestCase]) -> None:
    for case in cases.values():
        graph = _model(case).graph
        given = dict(case.inputs)
        for item in graph.input:
            value = given[item.name]
            if item.type.HasField("tensor_type") and isinstance(value, Tensor):
                want = helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type).name
                assert value.dtype == ("string" if want == "object" else want)


@pytest.mark.parametrize(
    ("test", "operator"),
    [
        ("test_relu", "Relu"),
        ("test_affine_grid_2d", "AffineGrid"),
        ("test_affine_grid_2d_expanded", "AffineGrid"),
        ("test_affine_grid_3d_align_corners_expanded", "AffineGrid"),
        ("test_center_crop_pad_crop_axes_hwc_expanded", "CenterCropPad"),
        ("test_relu_expanded_ver18", "Relu"),
        ("test_bernoulli_expanded", "Bernoulli"),
        ("test_adagrad_multiple", "Adagrad"),
    ],
)
def test_the_operator_under_test(cases: dict[str, TestCase], test: str, operator: str) -> None:
    assert cases[test].provenance.operator == operator


def test_every_case_has_an_operator_of_the_standard(cases: dict[str, TestCase]) -> None:
    known = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    assert {case.provenance.operator for case in cases.values()} <= known


def test_expanded_nodes_name_the_same_operator(cases: dict[str, TestCase]) -> None:
    """ONNX prefixes what it expands with the operator it expanded: an independent witness."""
    witnessed = 0
    for name, case in cases.items():
        if "_expanded" not in name:
            assert [node.op_type for node in _model(case).graph.node] == [case.provenance.operator]
            continue
        base = re.sub(r"_expanded(_ver\d+)?$", "", name)
        prefix = f"{case.provenance.operator}_{base}_expanded_function_"
        inner = [out for node in _model(case).graph.node for out in node.output if "_function_" in out]
        assert all(out.startswith(prefix) for out in inner), name
        witnessed += bool(inner)
    assert witnessed > 300


RANDOM = {
    "test_bernoulli", "test_bernoulli_expanded", "test_bernoulli_double", "test_bernoulli_double_expanded",
    "test_bernoulli_seed", "test_bernoulli_seed_expanded", "test_training_dropout",
    "test_training_dropout_default", "test_training_dropout_default_mask", "test_training_dropout_mask",
}  # fmt: skip


def test_random_programs_are_compared_by_shape(cases: dict[str, TestCase]) -> None:
    assert {name for name, case in cases.items() if case.comparison == "shapes"} == RANDOM


def test_all_kinds_of_value_are_there(cases: dict[str, TestCase]) -> None:
    seen: Counter[str] = Counter()
    for case in cases.values():
        for _, value in (*case.inputs, *(case.expected or ())):
            seen[value.dtype if isinstance(value, Tensor) else type(value).__name__] += 1
    assert {
        "Sequence",
        "Absent",
        "string",
        "bfloat16",
        "int4",
        "uint2",
        "float4_e2m1fn",
        "float8_e5m2",
    } <= set(seen)


class Weird:
    pass


TO_VALUE: list[tuple[Any, Value]] = [
    (None, Absent()),
    ([], Sequence(())),
    ([np.array([1.0])], Sequence((Tensor.of(np.array([1.0])),))),
    (np.float16(2), Tensor("float16", (), b"\0\x40")),
    (np.array(["é"]), Tensor.of(np.array(["é"], dtype=object))),
    (numpy_helper.from_array(np.array([[1, 2]], np.int16)), Tensor.of(np.array([[1, 2]], np.int16))),
    (numpy_helper.from_array(np.array(["a"], dtype=object)), Tensor.of(np.array(["a"]))),
    (helper.make_tensor("i", TensorProto.INT4, [3], [-1, 7, -8]), Tensor("int4", (3,), b"\x0f\x07\x08")),
    (helper.make_tensor("b", TensorProto.BFLOAT16, [1], [1.0]), Tensor("bfloat16", (1,), b"\x80\x3f")),
]


@pytest.mark.parametrize(("given", "want"), TO_VALUE)
def test_values(given: Any, want: Value) -> None:
    assert to_value(given) == want


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({1: 2.0}, "a value is a map"),
        ([[np.array([1])]], "a value is a sequence of sequences"),
        ([None], "a value is a sequence with absent items"),
        (Weird(), "a value is Weird"),
        (np.zeros(2, "M8[s]"), "a tensor has no form in a case: unknown element type 'datetime64[s]'"),
    ],
)
def test_what_cannot_be_held_has_a_reason(given: Any, reason: str) -> None:
    with pytest.raises(Exception, match=re.escape(reason)):
        to_value(given)


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_the_command(tmp_path: Path, migrated: list[TestCase | Skip]) -> None:
    """Another process, with other hashes, makes the same cases; a second run adds none."""
    command = [
        sys.executable,
        "-m",
        "fuzzing.migrate",
        "onnx-node-tests",
        "--corpus",
        str(tmp_path / "corpus"),
    ]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    )
    *events, end = map(json.loads, ended.stdout.splitlines())
    assert end == {
        "event": "end",
        "cases": len(migrated),
        "new": len(migrated),
        "skipped": {},
        "library": "onnx",
        "version": onnx.__version__,
    }
    want = [(item.id, item.provenance.test) for item in migrated if isinstance(item, TestCase)]
    assert [(event["id"], event["test"]) for event in events] == want
    assert "cases" in ended.stderr
    corpus = Corpus(tmp_path / "corpus")
    assert set(corpus.ids()) == {case_id for case_id, _ in want}
    assert not any(corpus.add(item) for item in migrated if isinstance(item, TestCase))


def test_an_unknown_source_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jax-tests", "--corpus", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    known = ", ".join(sources.names())
    message = f"no case source is called 'jax-tests'; there are: {known}"
    assert json.loads(out) == {"event": "error", "kind": "usage", "message": message}
    assert err == f"python -m fuzzing.migrate: {message}\n"
    assert "onnx-node-tests" in known
    with pytest.raises(UnknownNameError):
        sources.get("")
