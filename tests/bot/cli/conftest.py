"""Fixtures that the commands' tests share: the ONNX tests are migrated once, and only for real campaigns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fuzzing.cases import TestCase
from tests.bot.cli.command_helpers import CommandResult, assay, create_empty_venv, write_catalogue

WriteCatalogue = Callable[..., Path]

#: So long a campaign on all of ONNX's tests runs cases. Some run in any case: they are sent at its beginning.
BUDGET = "3s"


@pytest.fixture(scope="session")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder in which real campaigns share one corpus."""
    return tmp_path_factory.mktemp("assay-data")


@pytest.fixture(scope="session")
def real_run(real_data: Path) -> Callable[[str], tuple[CommandResult, Path]]:
    """`real_run(backend)`: one short campaign on all of ONNX's tests and its report folder, run once."""
    done: dict[str, tuple[CommandResult, Path]] = {}

    def run(backend: str) -> tuple[CommandResult, Path]:
        if backend not in done:
            report = real_data / f"report-{backend}"
            options = ("--budget", BUDGET, "--repeats", "1", "--json", "--report", report)
            done[backend] = assay(real_data, "run", "--backend", backend, *options), report
        return done[backend]

    return run


@pytest.fixture
def catalogue_of(tmp_path: Path) -> WriteCatalogue:
    """`catalogue_of(case, ...)`: a data folder in which these are all of ONNX's tests."""

    def make(*cases: TestCase) -> Path:
        return write_catalogue(tmp_path / "data", cases)

    return make


@pytest.fixture(scope="session")
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without any package."""
    return create_empty_venv(tmp_path_factory.mktemp("bare") / "venv")
