"""A proposed test: the file before and after, as a patch."""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass
from functools import partial

from bot.errors import RefusalError
from bot.proposals.candidate_names import candidate_names
from bot.proposals.code_style import format_code, read_style, sort_imports
from bot.proposals.cpp_style import format_cpp, read_clang_format
from bot.proposals.regression import Regression
from bot.proposals.source_edit import NameTakenError, defined_names, merge, prune_imports
from bot.proposals.tree import Tree
from bot.proposals.writer import (
    Place,
    ProposalSettings,
    TestSite,
    Writer,
    get_writer,
    matching_writers,
)

#: Longest test in lines, its definition included: what a maintainer reads at a glance.
MAX_LINES = 25


@dataclass(frozen=True)
class Proposal:
    """A test in a file of a repository.

    before   the file, None if it is new; `after` is the same text if the test is there already
    command  the arguments of Python that run the test in the root of the repository
    other    the same test as text for another suite of the repository, "" without one
    """

    writer: str
    place: Place
    name: str
    before: str | None
    after: str
    command: tuple[str, ...]
    other: str = ""

    @property
    def path(self) -> str:
        """The file."""
        return self.place.path

    @property
    def is_new(self) -> bool:
        """Whether the test is not in the file yet."""
        return self.before != self.after

    @property
    def removes_mark(self) -> bool:
        """Whether the test is there, and only its mark of an expected failure goes."""
        return len(self.after) < len(self.before or "")

    def mail(self, subject: str, signer: str) -> str:
        """The commit as `git am` reads it, with a sign-off; "" for none. The signer is `Name <address>`."""
        if not self.is_new:
            return ""
        head = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: {signer}\nSubject: [PATCH] {subject}\n"
        return f"{head}\nSigned-off-by: {signer}\n---\n\n{self.patch()}"

    def patch(self) -> str:
        """The change as `git apply` reads it; "" for none."""
        return file_patch(self.path, self.before, self.after)


def file_patch(path: str, before: str | None, after: str) -> str:
    """The change of a file, None if it is new, as `git apply` reads it; "" for none."""
    if before == after:
        return ""
    old = f"a/{path}" if before is not None else "/dev/null"
    head = f"diff --git a/{path} b/{path}\n" + ("" if before is not None else "new file mode 100644\n")
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True), after.splitlines(keepends=True), old, f"b/{path}"
    )
    return head + "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def propose(
    regression: Regression,
    tree: Tree,
    settings: ProposalSettings = ProposalSettings(),  # noqa: B008 (frozen)
    *,
    is_open: bool = False,
) -> Proposal:
    """The test of a regression for a repository.

    is_open  whether the bug is not fixed; suites that accept it get a test that is expected to fail
    Raises RefusalError if there is no short test, UsageError for unreadable files.
    """
    writer, place = choose_place(regression, tree, settings)
    before = tree.read(place.path)
    if (edited := writer.edit(regression, before or "", is_open=is_open)) is not None:
        name, after = edited
        return Proposal(writer.name, place, name, before, after, writer.command(place, name))
    style = read_style(tree, place.path, writer.style)
    defined = defined_names(before or "")
    for name in candidate_names(regression):
        fails = is_open and writer.expects_failures
        site = TestSite(name, place, tree, defined, settings.header, expected_failure=fails)
        pruned = prune_imports(writer.write(regression, site))
        text = format_code(sort_imports(pruned, writer.first_party), style)
        _check(text, name)
        command, other = writer.command(place, name), _other_text(writer, regression, name, tree)
        if before is None:
            return Proposal(writer.name, place, name, None, text, command, other)
        try:
            after = merge(before, text, partial(format_code, style=style), writer.first_party)
        except NameTakenError:
            continue
        return Proposal(writer.name, place, name, before, after, command, other)
    raise RefusalError(f"{place.path} has a hundred tests of this name")


def choose_place(regression: Regression, tree: Tree, settings: ProposalSettings) -> tuple[Writer, Place]:
    """The writer and the place of a test. Raises RefusalError if the repository has none."""
    writers = (get_writer(settings.writer),) if settings.writer else matching_writers(regression)
    for one in writers:
        place = one.place(regression, tree, settings)
        if place is not None:
            return one, place
    named = f"the writer {settings.writer} has" if settings.writer else "no writer has"
    raise RefusalError(f"{named} a place for a test of {regression.outcome.backend} in this repository")


def _other_text(writer: Writer, regression: Regression, name: str, tree: Tree) -> str:
    """The same test for another suite, as the repository's clang-format leaves it."""
    text = writer.other_text(regression, name)
    configuration = read_clang_format(tree, writer.other_path) if text else None
    return text if configuration is None else format_cpp(text, configuration) or text


def _check(text: str, name: str) -> None:
    """Raises RefusalError for tests that nobody would have written."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_LINES:
                raise RefusalError(
                    f"the test has {lines} lines and at most {MAX_LINES} are proposed; "
                    "reduce the bug first with `/assay reduce`"
                )
    if "base64" in text:
        raise RefusalError("the program holds arrays that no short expression gives; reduce the bug first")
