"""The results of pairs by rule and API: counted from the corpus, and shown in every form of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.campaigns.provenance import Origin, origin
from bot.cli.campaigns.run_summary import print_summary
from bot.reports import renderer
from bot.reports.report import Report, build_report
from bot.store.models import Classification
from fuzzing.cases import Corpus, EquivalentPair, Provenance, Recipe, TestCase, TorchProgram
from fuzzing.outcomes import Verdict
from tests.bot.reports import sample_campaign

PASS, WRONG, CRASH = Verdict.PASS, Verdict.WRONG_RESULT, Verdict.CRASH
COUNTS = {
    ("vmap", "torch.exp"): {PASS: 3, CRASH: 2},
    ("vmap", "torch.sin"): {PASS: 5},
    ("views", "torch.exp"): {PASS: 4, WRONG: 1},
    ("commute", ""): {PASS: 7},
}
#: One of the passing pairs is of bfloat16, whose default bound is wider than EAGLE's.
EAGLE = {("vmap", "torch.exp"): 1}


@pytest.fixture(scope="module")
def report() -> Report:
    new, flaky, *_ = sample_campaign.findings()
    found = [
        replace(new, rules=(("vmap", "torch.exp"),), signature="a" * 16),
        replace(new, rules=(("vmap", "torch.exp"),), signature="b" * 16),
        replace(
            flaky, rules=(("views", "torch.exp"),), classification=Classification.FLAKY, signature="c" * 16
        ),
    ]
    return build_report(replace(sample_campaign.view(), findings=found, rules=COUNTS, eagle=EAGLE))


def test_a_rule_and_an_api_with_two_symptoms_count_as_one_bug(report: Report) -> None:
    totals = {row.rule: row for row in report.rule_totals}
    assert list(totals) == ["commute", "views", "vmap"]
    vmap = totals["vmap"]
    assert (vmap.apis, vmap.pairs, vmap.verdicts, vmap.bugs) == (2, 10, {PASS: 8, CRASH: 2}, 1)
    assert vmap.eagle == 1
    assert totals["commute"].apis == 0, "a rewrite of models has no API"
    assert totals["views"].bugs == 0, "what is flaky is no bug"


def test_every_form_of_the_report_has_the_table(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    assert "| `vmap` | `torch.exp` | 2 | 5 | `aaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbb` |" in renderer.markdown(
        report
    )
    page = renderer.html(report)
    assert '<td>vmap</td><td><code>torch.exp</code></td><td class="n">2</td><td class="n">5</td>' in page
    rows = renderer.as_json(report)["rules"]
    assert rows[0] == {
        "rule": "vmap",
        "api": "torch.exp",
        "head": {"pass": 3, "crash": 2},
        "eagle": 1,
        "bugs": ["a" * 16, "b" * 16],
    }
    print_summary(renderer.as_json(report), None, lambda _case: None)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["vmap", "2", "10", "1", "1", "2", "crash,", "8", "pass"] in lines


def test_a_report_without_pairs_has_no_table() -> None:
    plain = build_report(sample_campaign.view())
    assert renderer.as_json(plain)["rules"] == []
    assert "Equivalence rules" not in renderer.markdown(plain) + renderer.html(plain)


def test_a_stored_pair_is_counted_under_its_rule(tmp_path: Path) -> None:
    side = TorchProgram("import torch\n\n\ndef forward(x):\n    return x\n")
    provenance = Provenance("eagle", "vmap/torch.exp/0", "torch.exp", "torch", "2.13.0")
    given = (("x", Recipe("uniform", "float32", (3,), 0.0, 1.0, 0)),)
    case = TestCase(EquivalentPair(side, side, "vmap"), given, provenance)
    Corpus(tmp_path).add(case)
    found = origin(tmp_path, case.id)
    assert found.rules == (("vmap", "torch.exp"),)
    assert found.subject == "torch.exp by vmap"
    models = Origin("eagle-graphs", "0/3", "commute reduce-ones", 9, "EquivalentModels")
    assert models.rules == (("commute", ""), ("reduce-ones", ""))
    assert models.subject == "", "which rewrites led to a failure says nothing about its bug"
