"""The source `deeprel`, on a few of torch's own samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from fuzzing.cases import TestCase, TorchCall
from fuzzing.generate.deeprel.pairs import Bug
from fuzzing.generate.deeprel.search import Settings
from fuzzing.generate.deeprel.seeds import recorded
from fuzzing.migrate import deeprel, sources
from tests.fuzzing.generate.deeprel import deeprel_kit
from tests.fuzzing.generate.deeprel.deeprel_kit import X

pytestmark = pytest.mark.compiler_torch_eager

FEW = {"torch.amax", "torch.nn.ReLU6"}


@pytest.fixture(scope="module")
def seeds() -> list[TestCase]:
    return list(recorded(4, lambda name: name in FEW))


def test_recorded_calls_are_a_few_of_each_operator(seeds: list[TestCase]) -> None:
    apis = [case.program.api for case in seeds if isinstance(case.program, TorchCall)]
    assert apis == ["torch.amax"] * 4 + ["torch.nn.ReLU6"] * 4


def test_the_source_yields_new_calls_of_other_apis(
    seeds: list[TestCase], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def few(_count: int) -> Iterator[TestCase]:
        yield from seeds

    monkeypatch.setattr(deeprel, "recorded", few)
    monkeypatch.setattr(deeprel, "Settings", partial(Settings, rounds=1))
    items = list(sources.get("deeprel").migrate())
    cases = [item for item in items if isinstance(item, TestCase)]
    assert len(cases) == len(items) > 40
    assert not {case.id for case in cases} & {case.id for case in seeds}
    assert {case.provenance.source for case in cases} == {"deeprel"}
    apis = {case.program.api for case in cases if isinstance(case.program, TorchCall)}
    assert {"torch.max", "torch.nn.Hardtanh"} <= apis
    told = capsys.readouterr().err
    assert told.startswith("8 recorded calls of 2 APIs; 20 candidate pairs")
    assert f"{len(cases)} new cases" in told


def test_what_the_library_dies_of_is_told_as_a_program() -> None:
    case = deeprel_kit.recorded("torch.neg", X)
    told = deeprel.told(Bug("torch.neg", case, "SIGSEGV"))
    assert told.startswith("SIGSEGV: ")
    assert "return torch.neg(x)" in told
