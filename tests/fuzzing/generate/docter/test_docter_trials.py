"""Draws given to torch in a worker: accepted, refused, crashed; and what becomes a case."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from fuzzing.cases import Recipe, TestCase, TorchCall
from fuzzing.generate.docter import Mode, apis, report_tables, trials
from fuzzing.generate.docter.__main__ import main
from fuzzing.generate.docter.trials import Trial, TrialPlan
from fuzzing.migrate import docter, sources
from fuzzing.migrate.source_parts import Part, migrate_source
from fuzzing.migrate.sources import Skip

pytestmark = pytest.mark.compiler_torch_eager

#: What torch takes, what it refuses now and then (no bound is documented), and what ends any process.
APIS = ("torch.nn.Linear", "torch.as_strided", "torch.os.abort", "torch.add")


@pytest.fixture(scope="module")
def tried() -> list[Trial]:
    return list(trials.run(APIS, TrialPlan(count=3)))


def test_a_crash_is_charged_to_its_api_alone(tried: list[Trial]) -> None:
    endings = {api: Counter(trial.ending for trial in tried if trial.api == api) for api in APIS}
    assert endings["torch.nn.Linear"] == {"accepted": 3}
    assert endings["torch.add"] == {"accepted": 3}
    assert endings["torch.as_strided"]["rejected"] > 0
    assert endings["torch.os.abort"]["crashed"] >= trials.CRASHES
    crash = next(trial for trial in tried if trial.ending == "crashed")
    assert crash.detail == "SIGABRT"


def test_the_table_has_shares_and_findings(tried: list[Trial]) -> None:
    lines = list(report_tables.format_acceptance(tried))
    assert next(line for line in lines if line.startswith("torch.add")).split() == ["torch.add", "100%"]
    assert "finding: torch.os.abort/tame/minimal/0 crashed: SIGABRT" in lines
    assert next(line for line in lines if line.startswith("all")).split()[1:3] == ["4", "APIs,"]


def test_the_same_seed_gives_the_same_cases() -> None:
    first, again, other = (_ids(TrialPlan(count=3, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def _ids(plan: TrialPlan) -> list[str]:
    return [drawn.id for _, drawn in plan.draw_calls("torch.nn.Conv2d") if isinstance(drawn, TestCase)]


def test_every_mode_has_names_of_its_own() -> None:
    for mode in Mode:
        drawn = list(TrialPlan(count=3, mode=mode).draw_calls("torch.nn.functional.relu"))
        assert [name.split("/")[2] for name, _ in drawn[1:]] == [mode.value] * 2
        assert all(isinstance(item, TestCase) for _, item in drawn)


def test_accepted_draws_become_cases_compared_as_they_must_be() -> None:
    wanted = ("torch.bernoulli", "torch.empty", "torch.nn.Dropout", "torch.as_strided", "torch.sin")
    found = list(docter.draw_cases(wanted, 3, 0))
    cases = [item for item in found if isinstance(item, TestCase)]
    compared = {case.provenance.operator: case.comparison for case in cases}
    assert compared["torch.bernoulli"] == compared["torch.empty"] == "shapes"
    assert compared["torch.nn.Dropout"] == compared["torch.sin"] == "values"  # a module is in eval mode
    assert {item.reason for item in found if isinstance(item, Skip)} == {"the library refuses the draw"}
    for case in cases:
        assert case.provenance.source == "docter"
        assert isinstance(case.program, TorchCall)
        assert all(isinstance(value, Recipe) for _, value in case.inputs)


def test_a_part_has_some_apis_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ("torch.sin", "torch.cos", "torch.tan", "torch.exp", "torch.log")
    monkeypatch.setattr(apis, "list_apis", lambda: iter(wanted))
    source = sources.get("docter")
    parts = [
        {
            item.provenance.operator
            for item in migrate_source(source, Part(number, 2))
            if isinstance(item, TestCase)
        }
        for number in (1, 2)
    ]
    assert parts[0] | parts[1] == set(wanted)
    assert not parts[0] & parts[1]


def test_the_command_draws_and_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", "torch.gather", "--count", "2", "--mode", "violating"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("torch.gather(input=") == 2
    assert shown.count("    # ") >= 2
    assert main(["measure", "torch.fft.fft2", "--count", "2"]) == 0
    assert "torch.fft                1 APIs, 100% accepted on average" in capsys.readouterr().out
    assert main(["measure", "torch.nowhere"]) == 2
    assert "no API begins with torch.nowhere" in capsys.readouterr().err
    assert main(["show", "torch.nowhere"]) == 2


def test_cases_go_through_json(tried: list[Trial]) -> None:
    for trial in tried:
        if trial.case is not None:
            assert json.loads(trial.case.files()["case.json"])["provenance"]["operator"] == trial.api
