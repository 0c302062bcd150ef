"""The written tests as people read them, and what holds for each; `ASSAY_GOLDEN=write` makes the files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import RefusalError
from bot.proposals.gtest_text import gtest_text
from bot.proposals.proposal import MAX_LINES, Proposal, propose
from bot.proposals.pull_request_text import write_subject
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree, folder_tree
from bot.proposals.writer import ProposalSettings, writer_names
from fuzzing.cases import Recipe, Tensor, TestCase
from fuzzing.outcomes import Evidence, Mismatch, Phase, Verdict
from tests.bot.proposals.regressions import cumsum, node_test, regression, torch_sum, torch_text
from tests.bot.proposals.trees import FILES, make_tree

GOLDEN = Path(__file__).parents[2] / "golden" / "proposals"
#: Writer → repository and bug.
WRITTEN: dict[str, tuple[str, Regression]] = {
    "tvm-onnx": ("tvm", regression("tvm", cumsum())),
    "tvm-exported-program": ("tvm", regression("tvm", torch_text())),
    "onnxruntime-python": ("onnxruntime", regression("onnxruntime", cumsum())),
    "pytorch": ("inductor", regression("inductor", torch_sum())),
    "openvino-pytorch": ("openvino", regression("openvino", torch_text())),
    "openvino-onnx": ("openvino", regression("openvino", cumsum())),
    "tinygrad-onnx": ("tinygrad", regression("tinygrad", cumsum())),
    "torch-tensorrt": ("torch-tensorrt", regression("tensorrt", torch_sum())),
    "iree-onnx-lists": ("iree", regression("iree", node_test())),
    "pytest-function": ("other", regression("iree", cumsum())),
}
PYTHON = sorted(set(WRITTEN) - {"iree-onnx-lists"})


def tree_of(repository: str) -> Tree:
    files = {name: text.encode() for name, text in FILES.get(repository, {}).items()}
    return Tree(files.get)


def proposed(writer: str) -> tuple[Proposal, Tree]:
    repository, bug = WRITTEN[writer]
    tree = tree_of(repository)
    return propose(bug, tree), tree


def with_file(tree: Tree, proposal: Proposal) -> Tree:
    """The tree with the proposal applied."""
    return Tree(lambda path: proposal.after.encode() if path == proposal.path else tree.reader(path))


def test_every_writer_is_shown() -> None:
    assert set(writer_names()) == set(WRITTEN)


@pytest.mark.parametrize("writer", sorted(WRITTEN))
def test_golden(writer: str) -> None:
    proposal, _ = proposed(writer)
    path = GOLDEN / f"{writer}.patch"
    if os.environ.get("ASSAY_GOLDEN") == "write":
        path.write_text(proposal.patch(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == proposal.patch(), (
        f"{path} differs; ASSAY_GOLDEN=write writes it"
    )
    assert proposal.writer == writer


@pytest.mark.parametrize("writer", sorted(WRITTEN))
def test_writing_twice_changes_nothing(writer: str) -> None:
    proposal, tree = proposed(writer)
    again = propose(WRITTEN[writer][1], with_file(tree, proposal))
    assert (again.patch(), again.is_new, again.name) == ("", False, proposal.name)


@pytest.mark.parametrize("writer", PYTHON)
def test_the_rest_of_the_file_stays(writer: str) -> None:
    proposal, _ = proposed(writer)
    removed = [line for line in proposal.patch().splitlines() if line.startswith("-") and line[:3] != "---"]
    assert all(line.startswith("-from ") for line in removed), "only an import may grow"


@pytest.mark.parametrize("writer", [name for name in PYTHON if name != "tinygrad-onnx"])
def test_the_formatter_of_the_repository_changes_nothing(writer: str, tmp_path: Path) -> None:
    repository, _ = WRITTEN[writer]
    folder = make_tree(tmp_path, repository) if repository in FILES else tmp_path
    proposal, _ = proposed(writer)
    (folder / proposal.path).parent.mkdir(parents=True, exist_ok=True)
    (folder / proposal.path).write_text(proposal.after, encoding="utf-8")
    width = {"openvino": 120}.get(repository)
    tool = (
        ["black", "--quiet"]
        if repository in ("inductor", "torch-tensorrt")
        else ["ruff", "format", "--quiet", "--no-cache"]
    )
    extra = ["--line-length", str(width)] if width else []
    command = [sys.executable, "-m", *tool, *extra, proposal.path]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    assert (folder / proposal.path).read_text(encoding="utf-8") == proposal.after


@pytest.mark.parametrize("writer", PYTHON)
def test_the_linter_of_the_repository_accepts_it(writer: str, tmp_path: Path) -> None:
    repository, _ = WRITTEN[writer]
    folder = make_tree(tmp_path, repository) if repository in FILES else tmp_path
    proposal, _ = proposed(writer)
    (folder / proposal.path).parent.mkdir(parents=True, exist_ok=True)
    (folder / proposal.path).write_text(proposal.after, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", proposal.path]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_another_test_of_the_name_gives_a_longer_name() -> None:
    bug = WRITTEN["tvm-onnx"][1]
    first, tree = proposed("tvm-onnx")
    changed = cumsum()
    doubled = tuple((name, Tensor.of(value.array() * 2)) for name, value in changed.values())  # type: ignore[union-attr]
    other = replace(bug, case=replace(changed, inputs=doubled))
    second = propose(other, with_file(tree, first))
    assert second.is_new
    assert second.name == "test_cum_sum_exclusive_reverse_float32_values"


def test_an_open_bug_is_expected_to_fail_where_the_suite_accepts_that() -> None:
    repository, bug = WRITTEN["pytorch"]
    assert "@unittest.expectedFailure" in propose(bug, tree_of(repository), is_open=True).after
    assert "expectedFailure" not in propose(bug, tree_of(repository)).after
    repository, bug = WRITTEN["tvm-onnx"]
    assert propose(bug, tree_of(repository), is_open=True).after == propose(bug, tree_of(repository)).after


def test_a_fixed_bug_loses_its_mark_and_nothing_else() -> None:
    repository, bug = WRITTEN["pytorch"]
    marked = propose(bug, tree_of(repository), is_open=True)
    tree = with_file(tree_of(repository), marked)
    unmarked = propose(bug, tree)
    changed = [
        line for line in unmarked.patch().splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert changed == ["-    @unittest.expectedFailure"]
    assert (unmarked.name, unmarked.removes_mark, marked.removes_mark) == (marked.name, True, False)
    assert write_subject(bug, unmarked) == "Expect test_cumsum_dim_values to pass"
    assert propose(bug, with_file(tree, unmarked)).patch() == ""
    assert propose(bug, tree, is_open=True).patch() == ""


def test_a_program_that_dynamo_does_not_capture_is_dynamos() -> None:
    bug = regression("inductor", torch_sum(), Verdict.CRASH, Phase.CONVERT)
    repros = "import torch\n\n\nclass ReproTests(TestCase):\n    def test_a(self):\n        pass\n"
    proposal = propose(bug, Tree({"test/dynamo/test_repros.py": repros.encode()}.get))
    assert proposal.name == "test_cumsum_dim_convert"
    assert proposal.command == ("test/dynamo/test_repros.py", "ReproTests.test_cumsum_dim_convert")
    assert "import torch._dynamo" not in proposal.after, "what the file has is not imported again"


def test_the_common_helper_is_called_where_it_runs_the_program_as_it_failed() -> None:
    repository, bug = WRITTEN["pytorch"]
    assert "self.common(fn, (x,), rtol=1e-3, atol=1e-5)" in propose(bug, tree_of(repository)).after
    half = replace(bug, case=with_inputs(bug, "float16"))
    function = regression("inductor", torch_text())
    without = Tree(lambda path: (tree_of(repository).reader(path) or b"").replace(b"common =", b"other ="))
    for other, tree in ((half, tree_of(repository)), (function, tree_of(repository)), (bug, without)):
        added = [line for line in propose(other, tree).patch().splitlines() if line.startswith("+")]
        assert "+        compiled = torch.compile(fn)" in added
        assert not any("self.common" in line for line in added)


def test_pytorch_compares_integers_exactly_without_saying_so() -> None:
    bug = regression("inductor", torch_text())
    (one,) = bug.outcome.evidence.mismatches
    exact = Evidence(mismatches=(replace(one, rtol=0.0, atol=0.0),))
    added = propose(replace(bug, outcome=replace(bug.outcome, evidence=exact)), tree_of("inductor")).patch()
    assert "+        self.assertEqual(compiled(x, y), fn(x, y))\n" in added


def test_the_file_that_the_suite_has_for_an_operator_is_taken() -> None:
    _, bug = WRITTEN["openvino-onnx"]
    folder, tree = "tests/layer_tests/onnx_tests", tree_of("openvino")
    assert propose(bug, tree).path == f"{folder}/test_cum_sum.py"
    known = f"{folder}/test_cumsum.py"
    there = Tree(lambda path: b"import pytest\n" if path == known else tree.reader(path))
    assert propose(bug, there).path == known


def with_inputs(bug: Regression, dtype: str) -> TestCase:
    """The case with inputs of another type."""
    inputs = tuple(
        (name, Tensor.of(value.array().astype(dtype)))
        for name, value in bug.case.inputs
        if isinstance(value, Tensor)
    )
    return replace(bug.case, inputs=inputs)


def test_a_wrong_type_is_checked_where_the_helper_can() -> None:
    bug = regression("tvm", cumsum())
    evidence = Evidence(mismatches=(Mismatch("y", "type", "float64, not float32"),))
    wrong_type = replace(bug, outcome=replace(bug.outcome, evidence=evidence))
    path = "tests/python/relax/test_frontend_onnx.py"
    helper = "def check_correctness(model, inputs=None, check_dtypes=False):\n    pass\n"
    proposal = propose(wrong_type, Tree(lambda name: helper.encode() if name == path else None))
    assert proposal.name == "test_cum_sum_exclusive_reverse_dtype"
    assert "check_dtypes=True)" in proposal.after
    older = Tree(lambda name: b"def check_correctness(model):\n    pass\n" if name == path else None)
    assert "check_dtypes" not in propose(wrong_type, older).after


def test_long_inputs_become_random_numbers_not_bytes() -> None:
    case = cumsum()
    long = Recipe("uniform", "float32", (2, 300), -1.0, 1.0, 7)
    bug = regression("tvm", replace(case, inputs=(("x", long),), expected=None))
    after = propose(bug, tree_of("tvm")).after
    assert "np.random.default_rng(0).uniform(" in after
    assert "base64" not in after


def test_no_test_is_longer_than_a_person_would_write() -> None:
    bug = regression("tvm", cumsum())
    nodes = bug.outline["nodes"] * MAX_LINES
    with pytest.raises(RefusalError, match="at most 25 are proposed"):
        propose(replace(bug, outline={**bug.outline, "nodes": nodes}), tree_of("tvm"))


def test_the_configuration_names_the_file_and_its_header() -> None:
    settings = ProposalSettings(path="ci/test_bugs.py", header="# SPDX-License-Identifier: MIT")
    proposal = propose(WRITTEN["pytest-function"][1], Tree(lambda _: None), settings)
    assert proposal.path == "ci/test_bugs.py"
    assert proposal.after.startswith("# SPDX-License-Identifier: MIT\n\nimport ")


def test_a_checkout_shows_no_files_outside(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("secret")
    inside = tmp_path / "checkout"
    inside.mkdir()
    (inside / "link.py").symlink_to(tmp_path / "outside.py")
    assert folder_tree(inside).read("link.py") is None
    assert folder_tree(inside).read("../outside.py") is None


def test_an_open_bug_is_listed_and_a_fixed_one_is_not() -> None:
    tree = tree_of("iree")
    bug = regression("iree", node_test(), Verdict.CRASH, Phase.COMPILE)
    fixed = propose(bug, tree)
    assert json.loads(fixed.after)["expected_compile_failures"] == ["onnx/node/generated/test_affine_grid_2d"]
    assert propose(bug, with_file(tree, fixed)).patch() == "", "a fixed bug without a mark changes nothing"
    for is_open, key, place in (
        (regression("iree", node_test()), "expected_run_failures", 1),
        (bug, "expected_compile_failures", 1),
    ):
        listed = propose(is_open, with_file(tree, fixed), is_open=True)
        assert json.loads(listed.after)[key][place] == "onnx/node/generated/test_cumsum_1d_exclusive"
        assert propose(is_open, with_file(tree, listed), is_open=True).patch() == ""


def test_the_cpp_suite_gets_a_text_of_its_own() -> None:
    proposal, _ = proposed("onnxruntime-python")
    path = GOLDEN / "onnxruntime-gtest.cc"
    if os.environ.get("ASSAY_GOLDEN") == "write":
        path.write_text(proposal.other, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == proposal.other
    assert not proposed("tvm-onnx")[0].other


def test_a_constant_that_is_no_literal_is_not_run() -> None:
    bug = regression("onnxruntime", cumsum())
    (constant,) = bug.outline["initializers"]
    hostile = {**constant, "array": "np.array(__import__('os').getpid(), np.int64)"}
    assert gtest_text(bug, "test_it")
    assert not gtest_text(replace(bug, outline={**bug.outline, "initializers": [hostile]}), "test_it")
