"""The node tests of the ONNX standard: one operator each, with inputs and the outputs ONNX expects.

`onnx.backend.test.case.node` builds them in memory; for operators defined as functions it adds the test
again with the body expanded (`…_expanded`), without the operator under test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from fuzzing.cases import TestCase
from fuzzing.migrate import onnx_backend_tests
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase as NodeTest

NAME = "onnx-node-tests"
_EXPANDED = re.compile(r"(?P<base>.+)_expanded(_ver\d+)?")


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """Every node test of the installed ONNX, in its order."""
    tests = collect()
    yield from onnx_backend_tests.migrate_tests(NAME, tests, operator_of(tests))


def collect() -> list[NodeTest]:
    """All node tests. Raises InfrastructureError where onnx is not installed.

    ONNX seeds numpy for every test function; `isolate_import` seeds what modules draw on import, so that two
    processes get the same bytes.
    """
    with onnx_backend_tests.isolate_import(NAME):
        from onnx.backend.test.case.node import collect_testcases

        tests: list[NodeTest] = list(collect_testcases(None))
    return tests


def operator_of(tests: Iterable[NodeTest]) -> Callable[[NodeTest], str]:
    """A function that returns the operator under test.

    An expanded test has the operator of its original; "" where a model of several nodes gives no hint.
    """
    single: dict[str, str] = {
        test.name: test.model.graph.node[0].op_type
        for test in tests
        if test.model is not None and len(test.model.graph.node) == 1
    }

    def operator(test: NodeTest) -> str:
        expanded = _EXPANDED.fullmatch(test.name)
        if expanded and expanded["base"] in single:
            return single[expanded["base"]]
        return single.get(test.name, "")

    return operator
