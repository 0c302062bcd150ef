"""Base class and registry of test writers: one file each in `bot/proposals/writers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from bot.proposals.candidate_names import class_name
from bot.proposals.code_style import CodeStyle
from bot.proposals.input_expressions import expected_output, numpy_input
from bot.proposals.regression import Regression
from bot.proposals.tolerances import keyword_text, read_defaults, short_number
from bot.proposals.torch_forms import torch_form
from bot.proposals.tree import Tree
from bot.reports.reproducer import full_configuration
from bot.reports.templates import render
from fuzzing.registry import Registry


@dataclass(frozen=True)
class Place:
    """Where a test goes: a file, new or existing, and the class, "" for a function."""

    path: str
    class_name: str = ""


@dataclass(frozen=True)
class TestSite:
    """A test to write: its name, its place, and what is there.

    defined  the names at the top of the file
    header   the comment at the top of a new file
    expected_failure  whether the bug is still open, so that the test is marked as failing
    """

    __test__ = False  # not a pytest class

    name: str
    place: Place
    tree: Tree
    defined: frozenset[str] = frozenset()
    header: str = ""
    expected_failure: bool = False


@dataclass(frozen=True)
class ProposalSettings:
    """Where a repository wants its tests.

    writer  name of the suite's writer, "" for the first whose files the repository has
    path    file of tests that no suite has a place for, header  the comment at its top
    """

    writer: str = ""
    path: str = "tests/test_compiler_regressions.py"
    header: str = ""


class Writer:
    """Writes tests in the style of one suite.

    name         in `.github/assay.yml` and on the command line
    backend      the compiler, frontend the library whose programs it loads; "" for any
    style        of a repository that configures none
    first_party  the repository's own package, whose imports come last
    path, class_name  the file that holds such tests, and its class
    expects_failures  whether the suite accepts a test of an open bug that is marked as failing
    is_provable  whether the test runs with the repository's own files alone
    timeout_s    of one run of the test
    helper       the function of the test's file that compares and takes `rtol` and `atol`, "" for none
    companions   other files that the test needs, as far as the repository has them
    suite        patterns of the files that test such programs; the test's own file always counts
    other_path   a file of the suite that `other_text` is for
    """

    name: ClassVar[str]
    backend: ClassVar[str] = ""
    frontend: ClassVar[str] = ""
    style: ClassVar[CodeStyle] = CodeStyle()
    first_party: ClassVar[str] = ""
    path: ClassVar[str] = ""
    class_name: ClassVar[str] = ""
    expects_failures: ClassVar[bool] = False
    is_provable: ClassVar[bool] = True
    timeout_s: ClassVar[float] = 120.0
    helper: ClassVar[str] = ""
    companions: ClassVar[tuple[str, ...]] = ()
    suite: ClassVar[tuple[str, ...]] = ()
    other_path: ClassVar[str] = ""

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """Where the test belongs; None if the tree is not of this suite."""
        del regression, settings
        return Place(self.path, self.class_name) if tree.has(self.path) else None

    def suite_files(self, place: Place) -> tuple[str, ...]:
        """Patterns of the files whose tests say what is covered already."""
        del place
        return self.suite

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """Further variables of the template: the parts of an ONNX model, or the `program` of torch."""
        del tree
        return (
            onnx_values(regression) if regression.frontend == "onnx" else {"program": torch_form(regression)}
        )

    def write(self, regression: Regression, test: TestSite) -> str:
        """A module with this test only. Raises RefusalError for programs without a short form."""
        options, _ = full_configuration(regression.outcome)
        rtol, atol = regression.tolerance
        known = read_defaults(test.tree.read(test.place.path) or "", self.helper) if self.helper else {}
        common = {
            "name": test.name,
            "class_name": class_name(test.name),
            "place": test.place,
            "defined": test.defined,
            "header": test.header,
            "expected_failure": test.expected_failure,
            "issue": regression.issue,
            "options": options,
            "wrong": regression.has_wrong_values,
            "rtol": short_number(rtol),
            "atol": short_number(atol),
            "tolerance": keyword_text({"rtol": rtol, "atol": atol}, known),
            "eps": short_number(max(rtol, atol)),
        }
        return render(f"proposals/{self.name}.py.j2", **common, **self.values(regression, test.tree))

    def edit(self, regression: Regression, before: str, *, is_open: bool) -> tuple[str, str] | None:
        """The test's name and the whole file after, of a file that is not Python; None for Python."""
        del regression, before, is_open
        return None

    def other_text(self, regression: Regression, name: str) -> str:
        """The same test for a suite whose tests cannot be proved here, to be shown only; "" without one."""
        del regression, name
        return ""

    def command(self, place: Place, name: str) -> tuple[str, ...]:
        """The arguments of Python that run the test as the suite does, in the root of the repository."""
        return ("-m", "pytest", "-q", "-p", "no:cacheprovider", self.test_id(place, name))

    def test_id(self, place: Place, name: str) -> str:
        """The test as pytest names it."""
        return "::".join(filter(None, (place.path, place.class_name, name)))


W = TypeVar("W", bound=type[Writer])
_WRITERS: Registry[Writer] = Registry("test writer", "bot.proposals.writers")


def writer(made: W) -> W:
    """Decorator: registers a writer under its name."""
    _WRITERS.add(made(), made.name)
    return made


def get_writer(name: str) -> Writer:
    """The writer of this name. Raises UnknownNameError."""
    return _WRITERS.get(name)


def writer_names() -> tuple[str, ...]:
    """The names of all writers."""
    return _WRITERS.names()


def matching_writers(regression: Regression) -> tuple[Writer, ...]:
    """The writers for a program's compiler and library; those for any come last."""
    found = [
        one
        for one in map(_WRITERS.get, _WRITERS.names())
        if one.backend in ("", regression.outcome.backend) and one.frontend in ("", regression.frontend)
    ]
    return tuple(sorted(found, key=lambda one: (one.backend == "", one.name)))


def onnx_values(regression: Regression) -> dict[str, Any]:
    """Variables of templates for ONNX models: the parts of the model, its inputs and expected outputs.

    `model` has the outline's keys; `feeds` is (name, expression) for each input, `expected` for each output
    that has a short one, and `opset` the version of ONNX's own operators.
    """
    outline = regression.outline
    expected = [(name, expected_output(value)) for name, value in regression.case.expected or ()]
    return {
        "model": outline,
        "code": regression.code,
        "opset": outline["opsets"].get("", 1) if outline else None,
        "feeds": [(name, numpy_input(value)) for name, value in regression.case.inputs],
        "expected": expected if expected and all(source for _, source in expected) else [],
    }
