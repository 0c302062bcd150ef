"""The linters of repositories, run on proposed tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.proposals.code_style import CodeStyle, read_style
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
        (GOOD, {"dot_flake8": FLAKE8}, ["`flake8` (E, F, W) finds nothing new"]),
        (BAD, {"dot_flake8": FLAKE8}, ["finds new: E111, E271, F401"]),
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


#: As PyTorch's, shortened: plug-ins, the length that bugbear checks, codes for some files only.
PYTORCH = """[flake8]
select = B,C,E,F,P,T4,W,B9
max-line-length = 120
ignore = E203,E501,W503,
    # shebang
    EXE001,B007,C408
per-file-ignores = __init__.py: F401 tests/test_a.py: F841,C416 torchgen/api/types/__init__.py: F401,F403
exclude = ./.git, ./third_party, *.pyi
"""
WIDE = "def test_it():\n    x = 1  #{}\n"


@pytest.mark.parametrize(
    ("after", "config", "want"),
    [
        (GOOD, PYTORCH, "`flake8` (B, C, E, F, W, B9) finds nothing new"),
        (
            "def test_it():\n    x = dict(a=[i for i in [1]])\n",
            PYTORCH,
            "finds nothing new",
        ),  # C408, C416, F841
        ("def test_it():\n    assert (lambda: 1)() is 1\n", PYTORCH, "finds new: F632"),
        ("def test_it(a=[]):\n    assert a\n", PYTORCH, "finds new: B006"),
        (WIDE.format(" x" * 58), PYTORCH, "finds nothing new"),  # 128 columns
        (WIDE.format(" x" * 62), PYTORCH, "finds new: B950"),  # 140 columns
        ("def test_it():\n    x=1\n    assert x\n", "[flake8]\n", "finds new: E225"),
        (
            "def test_it():\n    x = 1; assert x\n",
            "[flake8]\nselect = E70\nextend-ignore = E702\n",
            "nothing new",
        ),
        (BAD, "[flake8]\nexclude = tests\n", ""),
        (BAD, "[flake8]\nselect = P\n", ""),
    ],
)
def test_flake8_as_it_is_configured(after: str, config: str, want: str) -> None:
    found = checks(None, after, dot_flake8=config)
    assert (want in found[0]) if want else not found


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ('lint.select = ["F"]\n', "`ruff check` (F) finds new: F401"),
        ('lint.select = ["F"]\nlint.per-file-ignores = {"tests/**/*.py" = ["F4"]}\n', "finds nothing new"),
        ('lint.select = ["F"]\nlint.per-file-ignores = {"!tests/**" = ["F4"]}\n', "finds new: F401"),
        ('lint.select = ["E111"]\n', "finds nothing new"),  # a preview rule
        ('preview = true\nlint.select = ["E111"]\n', "finds new: E111"),
        ('exclude = ["tests/"]\nlint.select = ["F"]\n', ""),
        ('include = ["python/**/*.py"]\nlint.select = ["F"]\n', ""),
    ],
)
def test_ruff_as_it_is_configured(settings: str, want: str) -> None:
    found = checks(None, BAD, ruff_toml=settings + 'format.exclude = ["*"]\n')
    assert (want in found[0]) if want else not found


#: As ONNX Runtime's, but for the columns.
CLANG_FORMAT = "BasedOnStyle: Google\nColumnLimit: 60\nDerivePointerAlignment: false\n"
CLANG_LINTER = "[[linter]]\ncode = 'CLANGFORMAT'\ninclude_patterns = ['**/*.{}']\n"


def with_clang_format(configuration: str = CLANG_FORMAT, **files: str) -> tuple[Proposal, Tree]:
    """A test of ONNX Runtime with a C++ test beside it, in a repository with these files."""
    named = {name.replace("dot_lintrunner_toml", ".lintrunner.toml"): text for name, text in files.items()}
    given = {"onnxruntime/.clang-format": configuration, **named}
    below = tree_of("onnxruntime")
    tree = Tree(lambda path: given[path].encode() if path in given else below.reader(path))
    return propose(regression("onnxruntime", cumsum()), tree), tree


def test_the_cpp_test_is_as_clang_format_leaves_it() -> None:
    proposal, tree = with_clang_format()
    assert max(map(len, proposal.other.splitlines())) <= 68, "a comment's address is longer than 60 columns"
    assert '  test.AddInput<float>(\n      "x", {2, 3},' in proposal.other
    told = "`clang-format` of the test for the C++ suite changes nothing"
    assert told in check_proposal(proposal, tree)
    wide = replace(proposal, other=proposal.other.replace("(\n      ", "("))
    assert any("`clang-format`" in one and "changes line" in one for one in check_proposal(wide, tree))
    for kind, runs in (("cc", True), ("cuh", False)):
        proposal, tree = with_clang_format(dot_lintrunner_toml=CLANG_LINTER.format(kind))
        assert (told in check_proposal(proposal, tree)) is runs


def test_settings_that_clang_format_does_not_know_are_left_alone() -> None:
    proposal, tree = with_clang_format("NoSuchSetting: 1\n")
    assert '  test.AddInput<float>("x", {2, 3}, {0.5f, -2.0f' in proposal.other
    assert not any("clang-format" in one for one in check_proposal(proposal, tree))


LINTRUNNER = """
[[linter]]
code = 'RUFF'
include_patterns = ['**/*.py']
exclude_patterns = ['cmake/**'{}]
[[linter]]
code = 'SPACES'
include_patterns = ['**']
command = ['python3', 'tools/linter/adapters/grep_linter.py', '--pattern=[[:blank:]]$']
[[linter]]
code = 'NOQA'
include_patterns = ['**/*.py']
command = ['python3', 'tools/linter/adapters/grep_linter.py', '--pattern=# noqa([^:]|$)']
[[linter]]
code = 'INCLUDE'
include_patterns = ['c10/**']
command = ['python3', 'tools/linter/adapters/grep_linter.py', '--pattern=assert']
"""


def test_lintrunner_says_what_sees_a_file() -> None:
    settings = 'lint.select = ["F"]\n'
    found = checks(None, GOOD, ruff_toml=settings, dot_lintrunner_toml=LINTRUNNER.format(""))
    assert found == ("`ruff check` (F) finds nothing new", "`lintrunner` (SPACES, NOQA) finds nothing new")
    marked = GOOD.replace("x = 1", "x = 1  # noqa")
    found = checks(
        GOOD, GOOD + marked, ruff_toml=settings, dot_lintrunner_toml=LINTRUNNER.format(", 'tests/**'")
    )
    assert found == ("`lintrunner` (SPACES, NOQA) finds new: NOQA",)
    found = checks(marked, marked + GOOD, dot_lintrunner_toml=LINTRUNNER.format(""))
    assert found == ("`lintrunner` (SPACES, NOQA) finds nothing new",), "only added lines count"


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ("[tool.black]\nline-length = 100\n[tool.ruff]\n", CodeStyle(100)),
        ("[tool.black]\nline-length = 100\n[tool.ruff.format]\n", CodeStyle(88)),
        ("[tool.ruff.format]\nquote-style = 'single'\n", CodeStyle(88, quotes="single")),
        ("[tool.ruff]\nindent-width = 2\n", CodeStyle(120, 2)),
        ("[tool.mypy]\n", CodeStyle(120)),
    ],
)
def test_the_style_of_the_tool_that_formats(settings: str, want: CodeStyle) -> None:
    tree = Tree({"pyproject.toml": settings.encode()}.get)
    assert read_style(tree, "tests/test_a.py", CodeStyle(120)) == want
