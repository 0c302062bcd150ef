"""The proof of a proposed test, with real processes, and the text that shows it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from bot.errors import RefusalError
from bot.proposals.coverage_gap import Gap
from bot.proposals.proof import BuildResult, Proof, TestBuild, prove
from bot.proposals.proposal import Proposal
from bot.proposals.pull_request_text import RepositoryHabits, write_text
from bot.proposals.tree import Tree
from bot.proposals.writer import Place
from bot.runners.repository_test import RunResult, run_test
from tests.bot.proposals.regressions import cumsum, regression

COMMAND = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_a.py::test_it")
GOOD, BAD = TestBuild("ort 2", "/good/python", "b" * 40), TestBuild("ort 1", "/bad/python", "a" * 40)
EMPTY = Tree(lambda _: None)


def proposal(text: str = "def test_it():\n    assert True\n") -> Proposal:
    return Proposal("pytest-function", Place("tests/test_a.py"), "test_it", None, text, COMMAND)


def runs(good: RunResult, *bad: RunResult) -> list[str]:
    """The interpreters in the order in which a proof runs them."""
    left, seen = list(bad), []

    def run(python: str, files: Mapping[str, str], arguments: Sequence[str], timeout_s: float) -> RunResult:
        seen.append(python)
        return good if python == GOOD.python else left.pop(0)

    prove(proposal(), EMPTY, BAD, GOOD, run)
    return seen


PASSES, FAILS = RunResult(True, True, 1.0, ""), RunResult(True, False, 1.0, "")


def test_three_runs_on_each_build() -> None:
    assert runs(PASSES, FAILS, PASSES, FAILS) == [GOOD.python] * 3 + [BAD.python] * 3


def test_runs_that_a_busy_machine_slows_do_not_count() -> None:
    seconds = iter((11.0, 1.0, 30.0))

    def run(python: str, files: Mapping[str, str], arguments: Sequence[str], timeout_s: float) -> RunResult:
        return PASSES._replace(seconds=next(seconds)) if python == GOOD.python else FAILS

    assert prove(proposal(), EMPTY, BAD, GOOD, run).seconds == 1.0


@pytest.mark.parametrize(
    ("good", "bad", "why"),
    [
        (FAILS, FAILS, "the bug is not fixed there"),
        (PASSES, PASSES, "it does not show the bug"),
        (PASSES._replace(seconds=11.0), FAILS, "at most 10 s are proposed"),
        (PASSES._replace(ran=False, output="No module named pytest"), FAILS, "toolchain.extra"),
        (PASSES, FAILS._replace(ran=False, output="No module named onnx"), "No module named onnx"),
    ],
)
def test_what_proves_nothing_is_refused(good: RunResult, bad: RunResult, why: str) -> None:
    with pytest.raises(RefusalError, match=why):
        runs(good, bad, bad, bad)


def test_the_build_with_the_bug_gets_the_files_of_its_own_commit() -> None:
    given = []

    def run(python: str, files: Mapping[str, str], arguments: Sequence[str], timeout_s: float) -> RunResult:
        given.append((python, files, tuple(arguments)))
        return PASSES if python == GOOD.python else FAILS

    helpers = "extra/onnx_helpers.py"
    newer, older = (replace(proposal(f"x = {one}\n"), writer="tinygrad-onnx") for one in (2, 1))
    other = replace(older, command=("older",))
    after, before = (Tree({helpers: text}.get) for text in (b"new", b"old"))
    prove(newer, after, BAD, GOOD, run, (other, before))
    assert given[:3] == [(GOOD.python, {helpers: "new", "tests/test_a.py": newer.after}, COMMAND)] * 3
    assert given[3:] == [(BAD.python, {helpers: "old", "tests/test_a.py": older.after}, ("older",))] * 3


def test_an_open_bug_needs_no_bad_build() -> None:
    proof = prove(proposal(), EMPTY, None, GOOD, lambda *_: PASSES)
    assert proof.bad is None


def test_companions_are_there_as_far_as_the_repository_has_them() -> None:
    given: list[Mapping[str, str]] = []

    def run(python: str, files: Mapping[str, str], arguments: Sequence[str], timeout_s: float) -> RunResult:
        given.append(files)
        return PASSES

    helpers = "extra/onnx_helpers.py"
    tree = Tree(lambda path: b"x = 1\n" if path == helpers else None)
    prove(replace(proposal(), writer="tinygrad-onnx"), tree, None, GOOD, run)
    assert given[0] == {helpers: "x = 1\n", "tests/test_a.py": proposal().after}


@pytest.mark.parametrize(
    ("text", "ran", "passed"),
    [
        ("def test_it():\n    import os\n    assert os.environ['HOME'] == os.getcwd()\n", True, True),
        ("def test_it():\n    assert False\n", True, False),
        ("def test_other():\n    assert True\n", False, False),
        ("import missing_package\n\n\ndef test_it():\n    assert True\n", False, False),
        ("def test_it():\n    while True:\n        pass\n", True, False),
    ],
    ids=["passes", "fails", "is missing", "lacks a package", "hangs"],
)
def test_a_run_is_confined_and_told_apart(text: str, ran: bool, passed: bool) -> None:
    timeout_s = 5.0 if "while" in text else 120.0
    run = run_test(sys.executable, {"tests/test_a.py": text}, COMMAND, timeout_s)
    assert (run.ran, run.passed) == (ran, passed), run.output


def test_the_seconds_of_a_run_are_those_of_the_processor() -> None:
    waits = (
        "import time, unittest\n\n\nclass T(unittest.TestCase):\n  def test_it(self):\n    time.sleep(3)\n"
    )
    result = run_test(sys.executable, {"test_a.py": waits}, ("-m", "unittest", "test_a"), 60)
    assert result.passed
    assert 0 < result.seconds < 3


def test_who_dies_by_a_signal_fails() -> None:
    dies = "import os, signal\n\nos.kill(os.getpid(), signal.SIGKILL)\n"
    result = run_test(sys.executable, {"a.py": dies}, ("a.py",), 60)
    assert (result.ran, result.passed) == (True, False)


def test_the_text_says_what_was_run() -> None:
    bug = regression("onnxruntime", cumsum())
    proof = Proof(BuildResult("ort 1", "a" * 40, 3, 1), BuildResult("ort 2", "b" * 40, 3, 3), 1.24)
    text = write_text(bug, proposal(), proof, 7, "[ONNX] CumSum: <b>wrong</b>", "k" * 32)
    assert text.title == "Add a regression test for values of CumSum"
    assert text.branch == "assay/bug-7-test-it"
    for message in (
        "fails in 2 of 3 runs",
        "passes in 3 of 3 runs, in 1.2 s",
        f"| `ort 2` at {'b' * 12} |",
        "python -m pytest -q -p no:cacheprovider tests/test_a.py::test_it",
        "https://github.com/octo/compiler/issues/12",
        "Close this pull request if the test is not wanted",
    ):
        assert message in text.body, message
    assert "<b>" not in text.body
    crash = replace(bug, issue="")
    marked = write_text(crash, proposal(), replace(proof, bad=None), 7, "t", "k").body
    assert "adds a regression test for a bug that Assay found" in marked
    assert "| fails, as it is marked, in 3 of 3 runs, in 1.2 s; the bug is open |" in marked
    assert "passes" not in marked


def test_the_text_says_that_a_mark_goes() -> None:
    proof = Proof(BuildResult("a", "", 3, 0), BuildResult("b", "", 3, 3), 1.0)
    bug, added = regression("onnxruntime", cumsum()), proposal()
    text = write_text(
        bug, replace(added, before=f"@unittest.expectedFailure\n{added.after}"), proof, 7, "t", "k"
    )
    assert "removes the mark of an expected failure from the regression test" in text.body
    assert text.branch == write_text(bug, added, proof, 7, "t", "k").branch + "-passes"


def test_the_text_follows_the_repository() -> None:
    bug = regression("onnxruntime", cumsum())
    proof = Proof(None, BuildResult("ort 2", "b" * 40, 3, 3), 1.0)
    habits = RepositoryHabits(
        ("tests: add one", "docs: fix a word", "tests: more") * 3,
        sign_off=True,
        checks=("`ruff check` (E) finds nothing new",),
        gap=Gap(("CumSum",)),
    )
    text = write_text(bug, replace(proposal(), other="TEST(A, B) {\n}\n"), proof, 7, "t", "k", habits)
    assert text.title == "tests: add a regression test for values of CumSum"
    assert "git commit --amend --signoff" in text.body
    assert "- `ruff check` (E) finds nothing new.\n" in text.body
    assert "no test of this suite named CumSum" in text.body
    assert "```cpp\nTEST(A, B) {\n}\n```" in text.body
    plain = write_text(bug, proposal(), proof, 7, "t", "k").body
    assert "signoff" not in plain
    assert "```cpp" not in plain
