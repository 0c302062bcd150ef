"""The examples of torch's docstrings as cases."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import TestCase, TorchCall
from fuzzing.migrate import sources, torch_docs
from fuzzing.migrate.source_parts import Part
from fuzzing.migrate.sources import Skip

pytestmark = pytest.mark.compiler_torch_eager

#: A docstring that ends its process and one that sets global state are added to those of torch, in the child.
NAMES = (
    "torch.cat",
    "torch.ends_badly",
    "torch.nn.Conv2d",
    "torch.sets_double",
    "torch.Tensor.scatter_",
    "torch.fails",
)
ADDED = '''
import torch

def ends_badly():
    """
    >>> torch.sin(torch.ones(2))
    >>> import os; os.abort()
    """

def sets_double():
    """
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.cos(torch.ones(2))
    """

def fails():
    """
    >>> torch.ones(2, 3) @ torch.ones(2)
    Traceback (most recent call last):
    RuntimeError: as it should
    >>> open("/etc/hostname")
    >>> torch.ones(3).cuda()
    >>> torch.undefined_name
    >>> torch.tan(torch.ones(3))
    """

for function in (ends_badly, sets_double, fails):
    setattr(torch, function.__name__, function)
'''


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> list[TestCase | Skip]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(textwrap.dedent(ADDED))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        return list(torch_docs.run(NAMES))


def of(migrated: list[TestCase | Skip], name: str) -> list[TestCase]:
    cases = [item for item in migrated if isinstance(item, TestCase)]
    return [case for case in cases if case.provenance.test == name]


def skips(migrated: list[TestCase | Skip], name: str) -> list[str]:
    return [item.reason for item in migrated if isinstance(item, Skip) and item.test == name]


def apis(cases: list[TestCase]) -> list[str]:
    programs = [case.program for case in cases]
    return [program.api for program in programs if isinstance(program, TorchCall)]


def test_what_an_example_calls_becomes_a_case(migrated: list[TestCase | Skip]) -> None:
    assert apis(of(migrated, "torch.cat")) == ["torch.randn", "torch.cat", "torch.cat"]
    assert apis(of(migrated, "torch.nn.Conv2d")) == ["torch.randn", "torch.nn.Conv2d"]
    assert "torch.Tensor.scatter_" in apis(of(migrated, "torch.Tensor.scatter_"))


def test_every_case_runs_and_says_how_to_compare_it(migrated: list[TestCase | Skip]) -> None:
    for case in [item for item in migrated if isinstance(item, TestCase)]:
        assert torch_programs.build(case.program).run(list(case.values()))
        assert case.comparison == ("shapes" if apis([case]) == ["torch.randn"] else "values")


def test_examples_that_end_their_process_cost_themselves_alone(migrated: list[TestCase | Skip]) -> None:
    [reason] = skips(migrated, "torch.ends_badly")
    assert reason.startswith("its examples end the process")
    assert of(migrated, "torch.ends_badly") == []  # its cases had not been run again
    assert of(migrated, "torch.nn.Conv2d")


def test_what_examples_set_is_undone(migrated: list[TestCase | Skip]) -> None:
    _, cos = of(migrated, "torch.sets_double")
    assert dict(cos.values())["x"].dtype == "float64"  # type: ignore[union-attr]
    drawn = [
        case for case in of(migrated, "torch.Tensor.scatter_") if apis([case]) == ["torch.Tensor.scatter_"]
    ]
    assert "float32" in {getattr(value, "dtype", "") for _, value in drawn[-1].values()}


def test_examples_that_are_of_no_use_are_skipped_with_their_reasons(migrated: list[TestCase | Skip]) -> None:
    assert skips(migrated, "torch.fails") == [
        "an example reads or writes files",
        "an example needs another device",
        "an example fails",
    ]
    assert apis(of(migrated, "torch.fails")) == ["torch.ones", "torch.ones", "torch.ones", "torch.tan"]


def test_docstrings_are_found_once_in_a_fixed_order() -> None:
    names = torch_docs.list_documented()
    assert len(names) == len(set(names)) > 600
    assert names == torch_docs.list_documented()
    assert {"torch.add", "torch.nn.Conv2d", "torch.linalg.qr", "torch.fft.fft", "torch.special.erf"} <= set(
        names
    )
    assert "torch.Tensor.scatter_" in names


def test_parts_share_the_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []

    def run(names: list[str]) -> list[TestCase | Skip]:
        requested.extend(names)
        return []

    monkeypatch.setattr(torch_docs, "run", run)
    for number in (1, 2, 3):
        assert list(torch_docs.migrate(Part(number, 3))) == []
    assert sorted(requested) == sorted(torch_docs.list_documented())


def test_the_source_is_registered_and_names_itself(tmp_path: Path) -> None:
    assert sources.get("torch-docs").library == "torch"
    found = list(torch_docs._drop_duplicates(torch_docs.run(["torch.relu", "torch.sin", "torch.cos"])))
    cases = [item for item in found if isinstance(item, TestCase)]
    assert {case.provenance.source for case in cases} == {"torch-docs"}
    assert len({case.id for case in cases}) == len(cases)  # all three draw the same tensor


def test_folders_that_the_environment_names_are_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's import sets this variable; the folder is closed to examples."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    found = list(torch_docs.run(["torch.sin"]))
    assert any(isinstance(item, TestCase) for item in found), found
