"""A repository's own tests, read as text: which words each test names."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from bot.proposals.tree import Tree
from bot.proposals.writer import Place, Writer

_WORD = re.compile(r"[A-Za-z0-9]+")
#: googletest's macros, one test each; what stands before the first is shared by all.
_GTEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\s*\(", re.MULTILINE)
#: What runs ONNX's node tests on a backend: a class of the package `onnx.backend.test`.
_NODE_TEST_RUNNER = "BackendTest("
_QUOTED = re.compile(r"""["']([a-z0-9_]+)["']""")
#: Operators that a list of operators has, and how many of them make a list.
_COMMON, _FEWEST = frozenset({"abs", "add", "concat", "matmul", "relu", "sigmoid", "softmax", "transpose"}), 3


@dataclass(frozen=True)
class TestText:
    """The text of one test, and its words."""

    __test__ = False  # not a pytest class

    text: str
    words: frozenset[str]


@dataclass(frozen=True)
class Suite:
    """The files of a suite, by path."""

    files: Mapping[str, str]

    def naming(self, word: str) -> list[TestText]:
        """The tests that have a word, be it a part of a name with underscores."""
        parts = _WORD.findall(word)
        there = self._by_word.get(parts[0], []) if parts else []
        if parts == [word]:
            return there
        pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])")
        return [one for one in there if pattern.search(one.text)]

    @cached_property
    def _by_word(self) -> dict[str, list[TestText]]:
        found = defaultdict(list)
        for path, text in self.files.items():
            for test in (_gtests if path.endswith((".cc", ".cpp")) else _python_tests)(text):
                for word in test.words:
                    found[word].append(test)
        return dict(found)

    def runs_node_tests(self) -> bool:
        """Whether a file runs ONNX's own node tests."""
        return any(_NODE_TEST_RUNNER in text for text in self.files.values())

    def has_node_test(self, operator: str) -> bool:
        """Whether a file runs ONNX's own node tests of an operator, as far as its text tells.

        TVM lists the operators that pass; tinygrad excludes tests that fail. Node tests are named
        `test_OPERATOR_…`, the operator in small letters, mostly without underscores.
        """
        word = operator.lower().replace("or", "") if operator.endswith("OrEqual") else operator.lower()
        excluded = re.compile(rf"test_{'_?'.join(word)}(?![a-z0-9])")
        for text in self.files.values():
            if _NODE_TEST_RUNNER in text:
                listed = {one.replace("_", "") for one in _QUOTED.findall(text)}
                if word in listed or (len(listed & _COMMON) < _FEWEST and not excluded.search(text)):
                    return True
        return False

    def with_file(self, path: str, text: str) -> Suite:
        """The suite with a file in place of what was there."""
        return Suite({**self.files, path: text})


def read_suite(tree: Tree, writer: Writer, place: Place) -> Suite:
    """The file of a test, and the other tests of its suite as far as the tree lists folders."""
    own = tree.read(place.path)
    return Suite(
        {**tree.matching(writer.suite_files(place)), **({place.path: own} if own is not None else {})}
    )


@lru_cache(maxsize=4096)
def _python_tests(source: str) -> tuple[TestText, ...]:
    """The texts of functions, of methods of classes with several tests, and of classes with one test."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return ()
    lines, found = source.splitlines(), []
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.append(_test(lines, node))
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            several = sum(one.name.startswith("test") for one in methods) > 1
            found += [_test(lines, one) for one in (methods if several else [node])]
    return tuple(found)


@lru_cache(maxsize=4096)
def _gtests(source: str) -> tuple[TestText, ...]:
    starts = [found.start() for found in _GTEST.finditer(source)]
    parts = [source[low:high] for low, high in zip(starts, [*starts[1:], len(source)], strict=True)]
    return tuple(TestText(one, frozenset(_WORD.findall(one))) for one in parts)


def _test(lines: list[str], node: ast.FunctionDef | ast.ClassDef) -> TestText:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    text = "\n".join(lines[first - 1 : node.end_lineno])
    return TestText(text, frozenset(_WORD.findall(text)))
