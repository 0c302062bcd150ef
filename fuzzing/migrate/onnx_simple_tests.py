"""The simple model tests of ONNX: small graphs (sequences, gradients, old opsets) with outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fuzzing.cases import TestCase
from fuzzing.migrate import onnx_backend_tests
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase as ModelTest

NAME = "onnx-simple-tests"


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """Every simple model test of the installed ONNX, by name."""
    yield from onnx_backend_tests.migrate_tests(NAME, collect(), onnx_backend_tests.single_operator)


def collect() -> list[ModelTest]:
    """All simple model tests. Raises InfrastructureError where onnx is not installed.

    ONNX collects only once per process: its modules register their tests on import. Tests of kind "real",
    whole networks to download, are left out.
    """
    with onnx_backend_tests.isolate_import(NAME):
        from onnx.backend.test.case.model import collect_testcases

        found: dict[str, ModelTest] = {
            test.name: test for test in collect_testcases() if test.kind == "simple"
        }
    return [found[name] for name in sorted(found)]
