"""The linters of repositories, run on proposed tests."""

from __future__ import annotations

import pytest

from bot.proposals.linters import check_proposal
from bot.proposals.proposal import Proposal, propose
from bot.proposals.tree import Tree
from bot.proposals.writer import Place
from tests.bot.proposals.regressions import cumsum, regression
from tests.bot.proposals.test_writers import tree_of

#: Ruff joins the two strings, black does not.
BLACK = 'def test_it():\n    x = "a" "b"\n    assert x\n'
GOOD = "def test_it():\n    x = 1\n    assert x\n"
BAD = "import os\n\n\ndef test_it():\n  assert   1\n"
FLAKE8 = "[flake8]\nmax-line-length = 100\nextend-ignore =\n    E203,  # black\n    B007\n"


def checks(before: str | None, after: str, **files: str) -> tuple[str, ...]:
    proposal = Proposal("pytest-function", Place("tests/test_a.py"), "test_it", before, after, ())
    named = {name.replace("_toml", ".toml").replace("dot_", "."): text for name, text in files.items()}
    return check_proposal(proposal, Tree({name: text.encode() for name, text in named.items()}.get))


@pytest.mark.parametrize(
    ("after", "files", "want"),
    [
        (GOOD, {}, []),
        (GOOD, {"pyproject_toml": "[tool.black]\n"}, ["`black` at 88 columns changes nothing"]),
        (BLACK, {"pyproject_toml": "[tool.black]\n"}, ["`black` at 88 columns changes nothing"]),
        (BLACK, {"ruff_toml": ""}, ["`ruff format` at 88 columns changes line 2"]),
        (BAD, {"pyproject_toml": "[tool.black]\n"}, ["`black` at 88 columns changes line 5"]),
        (
            BAD,
            {"ruff_toml": 'line-length = 100\nlint.select = ["F", "I"]\nformat.exclude = ["*"]\n'},
            ["`ruff check` (F, I) finds new: F401"],
        ),
        (BAD, {"ruff_toml": 'lint.select = ["F"]\nlint.ignore = ["F401"]\n'}, ["nothing new"]),
        (GOOD, {"dot_flake8": FLAKE8}, ["`flake8` (E, F, W, C90) finds nothing new"]),
        (BAD, {"dot_flake8": FLAKE8}, ["finds new: F401"]),
        (GOOD, {"ruff_toml": 'lint.select = ["NOPE"]\nformat.exclude = ["*"]\n'}, []),
    ],
)
def test_what_they_find(after: str, files: dict[str, str], want: list[str]) -> None:
    found = checks(None, after, **files)
    assert len(found) >= len(want)
    assert all(one in " ".join(found) for one in want)
    assert want or not found


def test_what_the_file_had_before_does_not_count() -> None:
    files = {"ruff_toml": 'lint.select = ["F"]\n'}
    added = "\n\n" + GOOD.replace("test_it", "test_other")
    assert checks(BAD, BAD + added, **files) == (
        "`ruff format` at 88 columns changes nothing",
        "`ruff check` (F) finds nothing new",
    )


def test_a_written_test_passes_its_repositorys_linters() -> None:
    tree = tree_of("tvm")
    assert check_proposal(propose(regression("tvm", cumsum()), tree), tree) == (
        "`ruff format` at 100 columns changes nothing",
        "`ruff check` (E, F, I) finds nothing new",
    )
