"""Fixtures that the commands' tests share: the ONNX tests are migrated once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fuzzing.cases import TestCase
from tests.bot.cli.commands_kit import SOURCE, Ran, assay, bare_python, plant

Plant = Callable[..., Path]

#: So long a campaign on all of ONNX's tests runs cases. Some run in any case: they are sent at its beginning.
BUDGET = "3s"


@pytest.fixture(scope="session")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder in which real campaigns share one corpus."""
    return tmp_path_factory.mktemp("assay-data")


@pytest.fixture(scope="session")
def real_run(real_data: Path) -> Callable[[str], tuple[Ran, Path]]:
    """`real_run(backend)`: one short campaign on all of ONNX's tests and its report folder, run once."""
    done: dict[str, tuple[Ran, Path]] = {}

    def run(backend: str) -> tuple[Ran, Path]:
        if backend not in done:
            report = real_data / f"report-{backend}"
            options = ("--budget", BUDGET, "--repeats", "1", "--json", "--report", report)
            done[backend] = assay(real_data, "run", "--backend", backend, *options), report
        return done[backend]

    return run


@pytest.fixture(scope="session")
def catalogue_name(real_data: Path, real_run: Callable[[str], tuple[Ran, Path]]) -> str:
    """What the catalogue of ONNX's tests is called here and now."""
    real_run("onnxruntime")
    [path] = (real_data / "corpus" / "catalogues").glob(f"{SOURCE}-*.jsonl")
    return path.name


@pytest.fixture
def planted(tmp_path: Path, catalogue_name: str) -> Plant:
    """`planted(case, ...)`: a data folder in which these are all of ONNX's tests."""

    def make(*cases: TestCase) -> Path:
        return plant(tmp_path / "data", catalogue_name, cases)

    return make


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without any package."""
    return bare_python(tmp_path_factory.mktemp("bare") / "venv")
