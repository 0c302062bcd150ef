"""The form of commits that a repository's own history shows."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from bot.commit_files import Ancestor, CommitMessage
from bot.config.names import check_signer
from bot.proposals.commit_style import asks_for_sign_off, recent_subjects, signed_off, styled_subject
from bot.proposals.tree import Tree

SUBJECT = "Add a regression test for values of CumSum"


@pytest.mark.parametrize(
    ("recent", "want"),
    [
        (["Fix a word (#1)", "Add Relu", "Remove Neg"] * 3, SUBJECT),
        (["fix a word", "add relu", "Remove Neg"] * 3, "add a regression test for values of CumSum"),
        (["[Relax][ONNX] Fix Relu", "[TIR] Add a pass", "Bump"] * 3, f"[ONNX] {SUBJECT}"),
        (["[ONNX] Fix Relu", "[TESTS] Add one", "[DOC] Words"] * 3, f"[TESTS] {SUBJECT}"),
        (["[GPU] Fix", "[CPU] Add"] * 3, f"[Test] {SUBJECT}"),
        (["feat: x", "fix(onnx): y", "test: z"] * 3, "test: add a regression test for values of CumSum"),
        (["onnx: Fix x", "docs: Write y", "cpu: Add z"] * 3, f"onnx: {SUBJECT}"),
        (["gpu: Fix x", "cpu: Add z"] * 3, f"tests: {SUBJECT}"),
        (["Merge branch a", 'Revert "x"', "[A] b"] * 4, SUBJECT),
        (["[A] b"] * 4, SUBJECT),
        ([], SUBJECT),
    ],
)
def test_the_subject_has_the_form_of_most(recent: list[str], want: str) -> None:
    assert styled_subject(SUBJECT, recent, "onnx") == want


@pytest.mark.parametrize(
    ("path", "text", "asks"),
    [
        (".github/dco.yml", "require:\n  members: false\n", True),
        ("CONTRIBUTING.md", "Sign your commits: `git commit -s`.", True),
        (".github/CONTRIBUTING.md", "We use the Developer Certificate of Origin.", True),
        ("CONTRIBUTING.md", "Signed commits are welcome; sign the CLA.", False),
        ("README.md", "git commit -s", False),
    ],
)
def test_who_asks_for_a_sign_off(path: str, text: str, asks: bool) -> None:
    assert asks_for_sign_off(Tree({path: text.encode()}.get)) is asks


@pytest.mark.parametrize(
    ("text", "valid"),
    [("Ada L <ada@example.org>", True), ("ada@example.org", False), ("Ada <a@b>\nX: y <a@b>", False)],
)
def test_a_signer_has_a_name_and_an_address(text: str, valid: bool) -> None:
    with nullcontext() if valid else pytest.raises(ValueError, match="signs nothing off"):
        assert check_signer(text) == text


def test_a_message_with_a_sign_off() -> None:
    assert signed_off("Add a test", "") == "Add a test"
    assert (
        signed_off("Add a test", "Ada L <ada@example.org>")
        == "Add a test\n\nSigned-off-by: Ada L <ada@example.org>"
    )


def test_the_subjects_are_those_of_the_last_commits() -> None:
    class Mirror:
        def history(self, target: str, sha: str, limit: int) -> list[Ancestor]:
            assert (target, sha, limit > 0) == ("octo/compiler", "b", True)
            return [Ancestor("b", 2.0), Ancestor("a", 1.0)]

        def message(self, target: str, sha: str) -> CommitMessage:
            return CommitMessage(sha, "Ada", f"Add {sha}")

    assert recent_subjects(Mirror(), "octo/compiler", "b") == ("Add b", "Add a")
    assert recent_subjects(object(), "octo/compiler", "b") == ()
