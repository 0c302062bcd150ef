"""The source `deeprel`, on a few of torch's own samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from fuzzing.cases import TestCase, TorchCall
from fuzzing.generate.deeprel.api_pairs import LibraryBug
from fuzzing.generate.deeprel.search import SearchSettings
from fuzzing.migrate import deeprel, sources
from fuzzing.migrate.deeprel_seeds import list_sampled_apis, sample_calls
from fuzzing.migrate.source_parts import Part, migrate_source
from fuzzing.migrate.sources import Skip
from tests.fuzzing.generate.deeprel import deeprel_helpers
from tests.fuzzing.generate.deeprel.deeprel_helpers import X

pytestmark = pytest.mark.compiler_torch_eager

FEW = {"torch.amax", "torch.nn.ReLU6"}


@pytest.fixture(scope="module")
def seeds() -> list[TestCase]:
    return list(sample_calls(4, lambda name: name in FEW))


def test_recorded_calls_are_a_few_of_each_operator(seeds: list[TestCase]) -> None:
    apis = [case.program.api for case in seeds if isinstance(case.program, TorchCall)]
    assert apis == ["torch.amax"] * 4 + ["torch.nn.ReLU6"] * 4


def test_the_source_yields_new_calls_of_other_apis(
    seeds: list[TestCase], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def few(_count: int, wanted: Callable[[str], bool] | None = None) -> Iterator[TestCase]:
        yield from (seed for seed in seeds if wanted is None or wanted(f"torch.{seed.provenance.operator}"))

    monkeypatch.setattr(deeprel, "sample_calls", few)
    monkeypatch.setattr(deeprel, "SearchSettings", partial(SearchSettings, rounds=1))
    items = list(sources.get("deeprel").migrate())
    cases = [item for item in items if isinstance(item, TestCase)]
    assert len(cases) == len(items) > 40
    assert not {case.id for case in cases} & {case.id for case in seeds}
    assert {case.provenance.source for case in cases} == {"deeprel"}
    apis = {case.program.api for case in cases if isinstance(case.program, TorchCall)}
    assert {"torch.max", "torch.nn.Hardtanh"} <= apis
    reported = capsys.readouterr().err
    assert reported.startswith(
        "deeprel: 8 calls of 2 APIs; trying their candidates\n8 recorded calls of 2 APIs; 20 "
    )
    assert f"{len(cases)} new cases" in reported
    mine = list(
        migrate_source(sources.get("deeprel"), Part(1, 2))
    )  # relu falls to the first part, amax does not
    assert {_id(item) for item in mine} == {
        case.id for case in cases if " <- torch.nn.ReLU6 " in case.provenance.test
    }


def _id(item: TestCase | Skip) -> str:
    assert isinstance(item, TestCase)
    return item.id


def test_relatives_are_of_one_family() -> None:
    names = ("torch.relu", "torch.Tensor.relu_", "torch.nn.functional.relu6", "torch.nn.ReLU")
    assert {deeprel.family_name(name) for name in names} == {"relu"}


def test_what_is_covered_is_known_without_sampling() -> None:
    known = list_sampled_apis()
    assert {"torch.amax", "torch.nn.ReLU6", "torch.nn.functional.relu"} <= known
    assert "torch.relu" not in known


def test_what_the_library_dies_of_is_told_as_a_program() -> None:
    case = deeprel_helpers.recorded("torch.neg", X)
    reported = deeprel.describe_bug(LibraryBug("torch.neg", case, "SIGSEGV"))
    assert reported.startswith("SIGSEGV: ")
    assert "return torch.neg(x)" in reported
