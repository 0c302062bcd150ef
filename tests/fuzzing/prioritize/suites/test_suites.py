"""What compilers' own tests cover, and counting it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from fuzzing.errors import UnknownNameError, UsageError
from fuzzing.prioritize import suites
from fuzzing.prioritize.suites import Suite, operator_counts

GOOGLETEST = """\
constexpr const char* kName = "Where";
template <typename T>
void RunSlice(const std::vector<int>& dims, const std::set<std::string>& left_out = {"cuda"}) {
  OpTester test("Slice", 10);
}
static void RunMore() { RunSlice<float>({1}); }
TEST(SliceTest, Slice1D) { RunSlice<float>({6}); }
TEST(SliceTest, Slice2D) { RunMore(); }
TEST(MathOpTest, Add_float) {
  OpTester test("Add", 7);
  test.AddInput<float>("shape", {1}, {2.f});
}
TEST_F(WhereOpTest, Broadcast) { OpTester test{kName, 9}; }
TEST(OtherTest, Nothing) { EXPECT_TRUE(true); }
void Add() { OpTester test("Add", 7); }
"""
PYTEST = """\
import torch
from torch import nn

def verify(model):
    assert model is not None

def test_conv2d():
    verify(nn.Conv2d(1, 1, 1))
    verify(torch.nn.functional.conv2d)

class TestMore:
    def test_gelu(self, x):
        self.check(lambda: torch.ops.aten.gelu(x), "add")

    def check(self, f):
        torch.add(1, 1)

def test_view():
    verify(torch)
"""


@pytest.mark.parametrize("suite", suites.names())
def test_those_that_come_with_us_are_read_and_say_what_they_are(suite: str) -> None:
    loaded = suites.load(suite)
    assert len(loaded.operators) > 80
    assert len(loaded.origin) > 80
    assert all(tests > 0 for tests in loaded.operators.values())
    spelled = list(loaded.operators)
    assert spelled == sorted(spelled)
    if suite.endswith(".onnx"):
        known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
        assert set(spelled) <= known


def test_the_frontends_that_matter_are_there() -> None:
    assert {"onnxruntime.onnx", "openvino.onnx", "openvino.torch", "tvm.onnx", "tvm.torch"} <= set(
        suites.names()
    )


def test_operators_are_met_by_what_they_are() -> None:
    suite = Suite.from_json({"origin": "here", "operators": {"conv2d": 3, "aten::add": 1, "add.Scalar": 1}})
    assert suite.operators["torch.nn.Conv2d"] == 3
    assert suite.operators.get("torch.nn.functional.conv2d") == 3
    assert suite.operators.get("torch.nn.Conv3d", 0) == 0
    assert suite.operators["torch.Tensor.add_"] == 2
    assert suite.operators["aten::add"] == 1
    assert "torch.conv2d" in suite.operators
    assert len(suite.operators) == 3


@pytest.mark.parametrize(
    "obj",
    [
        None,
        {},
        {"origin": "x", "operators": {"Add": "many"}},
        {"origin": "x", "operators": {"Add": 0}},
        {"origin": "x", "operators": ["Add"]},
        {"origin": "x", "operators": {}, "instances": [{}]},
    ],
)
def test_what_is_no_suite_is_refused(obj: Any) -> None:
    with pytest.raises(UsageError, match=r"no suite|counts the tests|no operator instance"):
        Suite.from_json(obj)


def test_a_suite_of_ones_own_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx.json"
    path.write_text(json.dumps({"origin": "mine", "operators": {"Add": 2}}))
    assert suites.load(str(path)).operators["Add"] == 2
    with pytest.raises(UsageError, match="cannot read the suite"):
        suites.load(str(tmp_path / "none.json"))
    with pytest.raises(UnknownNameError, match=r"there are: onnxruntime\.onnx, "):
        suites.load("nobody.onnx")


def test_googletests_are_counted_by_what_they_and_their_helpers_name(tmp_path: Path) -> None:
    (tmp_path / "a_test.cc").write_text(GOOGLETEST)
    (tmp_path / "notes.txt").write_text('TEST(A, B) { OpTester test("Add"); }')
    assert operator_counts.count([tmp_path], ["Add", "Slice", "Where", "Shape"]) == {
        "Slice": 2,
        "Add": 1,
        "Where": 1,
    }


def test_pytests_are_counted_by_scoped_names_else_by_their_own(tmp_path: Path) -> None:
    (tmp_path / "test_frontend.py").write_text(PYTEST)
    found = operator_counts.count([tmp_path / "test_frontend.py"], ["add", "conv2d", "gelu", "view"])
    assert found == {"conv2d": 1, "gelu": 1, "add": 1, "view": 1}


def test_counting_prints_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a_test.cc").write_text(GOOGLETEST)
    assert operator_counts.main(["--frontend", "onnx", "--origin", "ours", str(tmp_path)]) == 0
    reported = capsys.readouterr()
    assert Suite.from_json(json.loads(reported.out)).operators["Slice"] == 2
    assert reported.err == "4 tests of 3 operators\n"


def test_counting_tells_its_users_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert operator_counts.main(["--frontend", "jax", "--origin", "x", str(tmp_path)]) == 2
    assert operator_counts.main(["--frontend", "onnx", "--origin", "x", str(tmp_path / "none.rs")]) == 2
    assert "neither a folder nor a file" in capsys.readouterr().err
