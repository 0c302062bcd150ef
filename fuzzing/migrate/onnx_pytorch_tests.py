"""Models that PyTorch once exported for the ONNX standard, with what ONNX expects.

Files below `onnx/backend/test/data`: `pytorch-converted`, a layer each, and `pytorch-operator`, a function
each; mostly opset 6, so they test old models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fuzzing.cases import TestCase
from fuzzing.migrate import onnx_backend_tests, onnx_data_sets
from fuzzing.migrate.sources import Skip, register_source

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase as FileTest

NAME = "onnx-pytorch-tests"
KINDS = ("pytorch-converted", "pytorch-operator")


@register_source(NAME, library="onnx")
def migrate() -> Iterator[TestCase | Skip]:
    """Every test of both kinds in the installed ONNX, kind by kind, by name."""
    yield from onnx_backend_tests.migrate_tests(NAME, collect(), onnx_backend_tests.single_operator)


def collect() -> list[FileTest]:
    """All tests, with their models and data. Raises InfrastructureError where onnx is not installed."""
    with onnx_backend_tests.isolate_import(NAME):
        from onnx.backend.test.loader import load_model_tests

        found = [
            test for kind in KINDS for test in sorted(load_model_tests(kind=kind), key=lambda test: test.name)
        ]
    return [_read(test) for test in found]


def _read(test: FileTest) -> FileTest:
    import onnx

    folder = Path(test.model_dir or "")
    model = onnx.load(folder / "model.onnx")
    sets = [onnx_data_sets.read_data_set(beside, model) for beside in onnx_data_sets.data_set_folders(folder)]
    return replace(test, model=model, data_sets=sets)
