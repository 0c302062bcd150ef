"""What a proposed test adds to its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.proposals.coverage_gap import Gap, find_gap
from bot.proposals.proposal import choose_place
from bot.proposals.suite import Suite, read_suite
from bot.proposals.tree import folder_tree
from bot.proposals.writer import ProposalSettings
from tests.bot.proposals.regressions import cumsum, node_test, regression, torch_sum
from tests.bot.proposals.trees import make_tree


def suite(text: str | None) -> Suite:
    return Suite({} if text is None else {"tests/test_a.py": text})


RUNNER = "runner = onnx.backend.test.BackendTest(Ours, __name__)\n"
ONE = 'def test_a():\n    node = helper.make_node("{}", ["x"], ["y"], {}=1)\n'


@pytest.mark.parametrize(
    ("before", "gap"),
    [
        (None, Gap(("CumSum",), ("exclusive", "reverse"))),
        (ONE.format("CumSumInteger", "exclusive"), Gap(("CumSum",), ("exclusive", "reverse"))),
        (ONE.format("CumSum", "exclusive"), Gap((), ("reverse",))),
        (ONE.format("CumSum", "axis") + ONE.format("Relu", "reverse"), Gap((), ("exclusive", "reverse"))),
        ("@pytest.mark.parametrize('reverse', [1])\n" + ONE.format("CumSum", "exclusive"), Gap()),
        ("not python (", Gap(("CumSum",), ("exclusive", "reverse"))),
    ],
)
def test_what_no_test_named(before: str | None, gap: Gap) -> None:
    assert find_gap(suite(before), regression("onnxruntime", cumsum())) == gap
    assert bool(gap) is (gap != Gap())


def test_a_class_with_one_test_is_one_test_and_others_are_not() -> None:
    bug = regression("inductor", torch_sum())
    net = "class Test:\n    def net(self):\n        cumsum(x)\n\n    def test_a(self):\n        run(dim=1)\n"
    assert find_gap(suite(net), bug) == Gap()
    assert find_gap(suite(net + "\n    def test_b(self):\n        pass\n"), bug) == Gap((), ("dim",))


def test_all_files_of_the_suite_count(tmp_path: Path) -> None:
    tree, bug = folder_tree(make_tree(tmp_path, "onnxruntime")), regression("onnxruntime", cumsum())

    def gap() -> Gap:
        return find_gap(read_suite(tree, *choose_place(bug, tree, ProposalSettings())), bug)

    assert gap() == Gap(("CumSum",), ("exclusive", "reverse"))
    folder = tmp_path / "onnxruntime/test/providers/cpu/math"
    folder.mkdir(parents=True)
    (folder / "cumsum_test.cc").write_text(
        'TEST(CumSumTest, A) {\n  OpTester test("CumSum", 11);\n}\n\n'
        'TEST(CumSumTest, B) {\n  test.AddAttribute<int64_t>("exclusive", 1);  // CumSum\n}\n'
    )
    (folder / "model.cc").write_text("CumSum reverse\n")
    assert gap() == Gap((), ("reverse",))


def test_a_node_test_adds_nothing_where_the_suite_runs_them() -> None:
    runner = Suite({"test_backend.py": RUNNER + "exclude('test_cumsum_*')"})
    assert find_gap(runner, regression("tvm", node_test())) == Gap()
    generated = replace(cumsum(), provenance=replace(cumsum().provenance, source="isra"))
    assert find_gap(runner, regression("tvm", generated)).operators == ("CumSum",)
    assert find_gap(Suite({"test_backend.py": RUNNER}), regression("tvm", generated)) == Gap()
    assert find_gap(Suite({}), regression("tvm", node_test())).operators == ("CumSum",)


def test_what_was_declined_counts_as_covered() -> None:
    bug = regression("onnxruntime", cumsum())
    gap = find_gap(Suite({}), bug)
    assert gap.covers(bug) == [("CumSum", ""), ("CumSum", "exclusive"), ("CumSum", "reverse")]
    assert find_gap(Suite({}), bug, gap.covers(bug)) == Gap()
    assert find_gap(Suite({}), bug, [("Elu", ""), ("CumSum", "reverse")]) == Gap(("CumSum",), ("exclusive",))


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("", {"Log", "LogSoftmax", "LessOrEqual"}),
        ("exclude('test_logsoftmax_*')\nexclude('test_less_equal_cpu')", {"Log"}),
        ("PASSING = ['abs', 'add', 'relu', 'log', 'less_equal']", {"Log", "LessOrEqual"}),
    ],
)
def test_the_node_tests_that_a_suite_runs(text: str, covered: set[str]) -> None:
    runner = Suite({"test_backend.py": RUNNER + text})
    assert {one for one in ("Log", "LogSoftmax", "LessOrEqual") if runner.has_node_test(one)} == covered
    assert not Suite({"test_other.py": text}).has_node_test("Log")
