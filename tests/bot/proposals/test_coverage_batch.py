"""Batches of tests from passing cases, ranked by what they add."""

from __future__ import annotations

from dataclasses import replace

import onnx.parser

from bot.proposals.coverage_batch import batch_checks, batch_files, batch_patch, propose_batch
from bot.proposals.coverage_gap import Gap
from bot.proposals.proposal import Proposal
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import ProposalSettings
from fuzzing.cases import OnnxModel, Tensor, TestCase
from fuzzing.outcomes import Verdict
from tests.bot.proposals.regressions import X, cumsum, regression
from tests.bot.proposals.test_writers import tree_of


def passing(operator: str, backend: str = "tvm") -> Regression:
    """A passing case of one operator of x, as onnx.parser writes it."""
    text = (
        f'<ir_version: 9, opset_import: ["": 18]> g (float[2,3] x) => (float[2,3] y) {{ y = {operator}(x) }}'
    )
    program = OnnxModel(onnx.parser.parse_model(text).SerializeToString())
    case: TestCase = replace(cumsum(), program=program, expected=None)
    return regression(backend, case, Verdict.PASS, issue="")


def test_what_adds_most_comes_first_and_nothing_twice() -> None:
    cases = [passing(one) for one in ("Relu", "Neg", "Elu<alpha = 0.5>", "Elu<alpha = 0.7>", "Neg")]
    tree = tree_of("tvm")
    batch = propose_batch(cases, tree, ProposalSettings(), 5)
    assert [(one.proposal.name, one.gap) for one in batch] == [
        ("test_elu_alpha", Gap(("Elu",), ("alpha",))),
        ("test_neg", Gap(("Neg",), ())),
    ]
    patch = batch_patch(batch, tree)
    assert patch.count("diff --git") == 1
    assert patch.count("+def test_") == 2
    assert [one.proposal.name for one in propose_batch(cases, tree, ProposalSettings(), 1)] == [
        "test_elu_alpha"
    ]


def test_what_is_not_accepted_or_declined_is_left_out() -> None:
    cases, tree = [passing(one) for one in ("Elu<alpha = 0.5>", "Relu", "Neg", "Abs")], tree_of("tvm")
    seen: list[str] = []

    def accepts(proposal: Proposal) -> bool:
        seen.append(proposal.name)
        return proposal.name != "test_elu_alpha"

    batch = propose_batch(cases, tree, ProposalSettings(), 5, declined=[("Neg", "")], accepts=accepts)
    assert [one.proposal.name for one in batch] == ["test_abs"]
    assert seen == ["test_elu_alpha", "test_abs"]


def test_a_batch_has_as_many_files_as_its_suite_has() -> None:
    cases = [passing(one, "openvino") for one in ("Neg", "Abs", "Celu<alpha = 0.5>", "Celu<alpha = 0.7>")]
    tree = tree_of("openvino")
    batch = propose_batch(cases, tree, ProposalSettings(), 5, accepts=lambda _: True)
    folder = "tests/layer_tests/onnx_tests"
    assert list(batch_files(batch)) == [f"{folder}/test_{one}.py" for one in ("celu", "neg", "abs")]
    assert batch_patch(batch, tree).count("new file mode") == 3


def test_the_checks_of_all_files_are_told_once() -> None:
    cases, tree = [passing(one, "openvino") for one in ("Neg", "Abs")], tree_of("openvino")
    linted = Tree(
        lambda path: b"[flake8]\nmax-line-length = 20\n" if path == ".flake8" else tree.reader(path)
    )
    batch = propose_batch(cases, linted, ProposalSettings(), 5)
    (sentence,) = batch_checks(batch, linted)
    assert "finds new: E501" in sentence


def test_a_passing_case_without_a_suite_is_checked_against_the_reference() -> None:
    case = passing("Neg", "iree")
    assert propose_batch([case], Tree(lambda _: None), ProposalSettings(), 5) == [], "nothing to compare with"
    known = replace(case, case=replace(case.case, expected=(("y", Tensor.of(-X)),)))
    (one,) = propose_batch([known], Tree(lambda _: None), ProposalSettings(), 5)
    assert one.proposal.name == "test_neg"
    assert "np.testing.assert_allclose(got, want, rtol=0.001, atol=1e-05)" in one.proposal.after
    assert "wrong" not in one.proposal.after
