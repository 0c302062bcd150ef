"""The text of a pull request with tests from passing cases."""

from __future__ import annotations

from bot.proposals.batch_text import write_batch_text
from bot.proposals.coverage_batch import propose_batch
from bot.proposals.proof import BuildResult, Proof
from bot.proposals.pull_request_text import RepositoryHabits
from bot.proposals.writer import ProposalSettings
from tests.bot.proposals.test_coverage_batch import passing
from tests.bot.proposals.test_writers import tree_of


def test_it_says_what_each_test_adds_and_what_was_run() -> None:
    cases = [passing(one) for one in ("Elu<alpha = 0.5>", "Neg", "Abs", "Ceil")]
    batch = propose_batch(cases, tree_of("tvm"), ProposalSettings(), 5)
    proof = Proof(None, BuildResult("tvm 1", "b" * 40, 3, 3), 1.24)
    text = write_batch_text(
        batch, [proof] * 4, 7, "k" * 32, RepositoryHabits(checks=("`ruff` finds nothing",))
    )
    assert (text.title, text.branch) == ("Add tests of Elu, Neg, Abs and 1 more", "assay/tests-7")
    for message in (
        "4 tests to `tests/python/relax/test_frontend_onnx.py`",
        "| `test_elu_alpha` | `Elu; alpha of Elu` |",
        "| `test_neg` | `Neg` |",
        f"passes in 3 of 3 runs on tvm 1 at {'b' * 12}, the slowest of them in 1.2 s",
        "test_frontend_onnx.py::test_elu_alpha\n",
        "- `ruff` finds nothing.\n",
        "Close this pull request if the tests are not wanted",
    ):
        assert message in text.body, text.body
    assert "| file |" not in text.body
    alone = write_batch_text(batch[:2], [proof] * 2, 7, "k" * 32, RepositoryHabits())
    assert alone.title == "Add tests of Elu and Neg"


def test_it_names_the_file_of_each_test_of_several() -> None:
    cases = [passing(one, "openvino") for one in ("Neg", "Abs")]
    batch = propose_batch(cases, tree_of("openvino"), ProposalSettings(), 5)
    proof = Proof(None, BuildResult("openvino 1", "b" * 40, 3, 3), 1.24)
    text = write_batch_text(batch, [proof] * 2, 7, "k" * 32, RepositoryHabits())
    for message in (
        "This adds 2 tests to 2 files. Assay",
        "| test | file | adds |\n|---|---|---|\n",
        "| `test_neg` | `tests/layer_tests/onnx_tests/test_neg.py` | `Neg` |",
        "| `test_abs` | `tests/layer_tests/onnx_tests/test_abs.py` | `Abs` |",
    ):
        assert message in text.body, text.body
