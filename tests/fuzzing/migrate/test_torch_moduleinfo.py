"""torch's own database of modules as cases, on a few modules of each sort."""

from __future__ import annotations

import pytest

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import TestCase, TorchCall
from fuzzing.migrate import sources, torch_moduleinfo
from fuzzing.migrate.sources import Skip

pytestmark = pytest.mark.compiler_torch_eager

MODULES = (
    "nn.Conv1d",
    "nn.BatchNorm2d",
    "nn.GRUCell",
    "nn.NLLLoss",
    "nn.TransformerEncoder",
    "nn.LazyConv1d",
)


@pytest.fixture(scope="module")
def migrated() -> dict[str, list[TestCase | Skip]]:
    entries = {entry.name: entry for entry in torch_moduleinfo.load_database()}
    return {name: list(torch_moduleinfo.module_cases(entries[name])) for name in MODULES}


@pytest.mark.parametrize("name", ["nn.Conv1d", "nn.BatchNorm2d", "nn.GRUCell"])
def test_a_module_is_told_by_its_class_and_runs(
    name: str, migrated: dict[str, list[TestCase | Skip]]
) -> None:
    cases = [item for item in migrated[name] if isinstance(item, TestCase)]
    assert cases
    for case in cases:
        assert isinstance(case.program, TorchCall)
        assert case.program.api == f"torch.{name}"
        assert case.comparison == "values"
        assert torch_programs.build(case.program).run(list(case.values()))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nn.NLLLoss", "torch.nn.NLLLoss(weight=torch.tensor(["),
        ("nn.TransformerEncoder", "torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer("),
    ],
)
def test_what_a_module_is_made_from_is_told(
    name: str, text: str, migrated: dict[str, list[TestCase | Skip]]
) -> None:
    """Tensors and other modules."""
    programs = [item.program for item in migrated[name] if isinstance(item, TestCase)]
    assert all(isinstance(program, TorchCall) for program in programs)
    assert any(text in program.source() for program in programs if isinstance(program, TorchCall))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nn.LazyConv1d", "the library itself fails on its sample"),
    ],
)
def test_what_cannot_be_told_is_skipped_with_its_reason(
    name: str, reason: str, migrated: dict[str, list[TestCase | Skip]]
) -> None:
    assert reason in {item.reason for item in migrated[name] if isinstance(item, Skip)}


def test_the_source_is_registered() -> None:
    assert sources.get("torch-moduleinfo").library == "torch"
