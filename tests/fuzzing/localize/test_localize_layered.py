"""Every way of localization, on a compiler whose faults are known."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest

from fuzzing.cases import Corpus
from fuzzing.errors import UnknownNameError, UsageError
from fuzzing.localize.__main__ import main
from fuzzing.localize.localization import localize
from fuzzing.localize.methods.last_pass import find_open_passes
from fuzzing.outcomes import Verdict
from fuzzing.reduce.engine import Budget
from tests.fuzzing.localize.localize_kit import LAYERED, localize_facts, shard_of, unary

pytestmark = pytest.mark.compiler_onnxruntime
SHARD = shard_of(LAYERED)


def test_passes_that_take_over_from_each_other_are_both_named() -> None:
    fact = localize_facts(unary("Neg", "Tanh", "Exp"), SHARD, "passes")["passes"]
    assert (fact.found, fact.confirmed) == (("fuse-tanh", "fuse-tanh-2"), True)


def test_of_a_wrong_result_the_first_wrong_stage_is_named() -> None:
    fact = localize_facts(unary("Abs", "Sqrt", "Exp"), SHARD, "stage")["stage"]
    assert (fact.found, fact.confirmed) == (("merge-sqrt",), True)
    assert "right after fuse-tanh" in fact.how


def test_a_pair_of_operators_is_told_apart_from_a_single_one() -> None:
    pair = localize_facts(unary("Neg", "Abs", "Sqrt", "Exp", "Ceil"), SHARD, "subgraph", "converter")
    assert pair["subgraph"].found == ("Abs", "Sqrt")
    assert "alone it does not differ: it takes Abs (node 1) before it" in pair["subgraph"].how
    assert pair["converter"].found == ("Abs.convert", "Sqrt.convert")
    single = localize_facts(unary("Neg", "Tanh", "Exp"), SHARD, "subgraph")["subgraph"]
    assert (single.found, single.confirmed) == (("Tanh",), True)


def test_the_pass_that_raises_is_named_and_what_cures_it() -> None:
    facts = localize_facts(unary("Abs", "Elu"), SHARD, "last_pass", "passes", "stage")
    assert facts["last_pass"].found == ("explode",)
    assert facts["passes"].found == ()  # it had nothing to do but raise: it is no part that is known
    assert "stage" not in facts


def test_the_pass_in_which_the_process_dies_is_named() -> None:
    found = localize(unary("Abs", "Selu"), SHARD, methods=("last_pass",))
    assert found.outcome.verdict is Verdict.CRASH
    assert [fact.found for fact in found.facts] == [("die",)]
    assert "assay-note" not in found.outcome.evidence.log


def test_the_converter_that_raises_is_named() -> None:
    fact = localize_facts(unary("Neg", "Erf", "Abs"), SHARD, "converter")["converter"]
    assert fact.found == ("Erf.convert",)


def test_innermost_passes_come_last() -> None:
    seen = (("entered", "all"), ("entered", "a"), ("left", "a"), ("entered", "b"), ("entered", "c"))
    assert find_open_passes(seen) == ["all", "b", "c"]
    assert find_open_passes((*seen, ("left", "b"))) == ["all"]
    assert find_open_passes(()) == []


def test_a_spent_budget_is_said_of_what_it_cut_off() -> None:
    found = localize(unary("Neg", "Tanh"), SHARD, budget=Budget(runs=3), methods=("passes", "converter"))
    assert found.runs == 3
    reported = {fact.what: fact for fact in found.facts}
    assert "the budget was spent" in reported["passes"].how
    assert reported["converter"].found == ("Neg.convert", "Tanh.convert")


def test_what_does_not_fail_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="nothing to localize"):
        localize(unary("Neg"), SHARD)
    with pytest.raises(UnknownNameError, match="did you mean 'passes'"):
        localize(unary("Tanh"), SHARD, methods=("pases",))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    corpus = Corpus(tmp_path / "corpus")
    case = unary("Neg", "Tanh")
    corpus.add(case)
    path = tmp_path / "shard.json"
    path.write_text(json.dumps(replace(SHARD, corpus=str(corpus.root), cases=(case.id,)).to_json()))
    return path


def run(*arguments: str) -> tuple[int, list[dict[str, object]]]:
    with redirect_stdout(io.StringIO()) as out:
        code = main(arguments)
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_program_tells_each_fact_and_the_end(file: Path) -> None:
    code, events = run(str(file), "--method", "subgraph", "--method", "stage")
    assert code == 0
    assert [event["event"] for event in events] == ["fact", "fact", "end"]
    assert [event["found"] for event in events[:2]] == [["fuse-tanh"], ["Tanh"]]
    assert events[2]["facts"] == 2


def test_the_program_says_what_was_asked_wrongly(file: Path, tmp_path: Path) -> None:
    code, [error] = run(str(tmp_path / "none.json"))
    assert (code, error["kind"]) == (2, "usage")
    given = json.loads(file.read_text())
    file.write_text(json.dumps(given | {"cases": []}))
    code, [error] = run(str(file))
    assert code == 2
    assert "of one case, not of 0" in str(error["message"])
