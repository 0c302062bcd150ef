"""Pairs as cases: their bytes, their sides, and what becomes of exceptions."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from fuzzing.cases import Dtype, EquivalentPair, Provenance, Recipe, TestCase, TorchProgram
from fuzzing.cases.programs import checked_program
from fuzzing.equivalence import draws, rule
from fuzzing.equivalence.pairs import make_pair, pair_of, subject_of
from fuzzing.equivalence.sampling import rules_by_api
from fuzzing.errors import CaseFormatError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.rng import Rng
from tests.fuzzing.equivalence.pair_helpers import pair_for, run_side, sides_of

FAIL = "raise ValueError('no')"


def text(*lines: str) -> TorchProgram:
    body = "".join(f"    {line}\n" for line in lines)
    return TorchProgram(f"import torch\n\n\ndef forward(x):\n{body}")


def pair(left: TorchProgram, right: TorchProgram) -> TestCase:
    given = Recipe("uniform", "float32", (3,), 1.0, 2.0, 0)
    return TestCase(
        EquivalentPair(left, right, "tests"), (("x", given),), Provenance("tests", "t", "torch.neg", "", "")
    )


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    same = text("return -x")
    cases = {
        "equal": pair(same, text("return 0 - x")),
        "different": pair(same, text("return 1 - x")),
        "shapes": pair(same, text("return (-x).reshape(1, 3)")),
        "missing": pair(text("return x, x"), text("return x")),
        "left fails": pair(text(FAIL), same),
        "right fails": pair(same, text(FAIL)),
        "both fail": pair(text(FAIL), text(FAIL)),
        "unsupported": pair(same, text("raise NotImplementedError('no such kernel')")),
        "no derivative": pair(
            same, text("raise RuntimeError('derivative for aten::bincount is not implemented')")
        ),
        "slight": pair(same, text("return 1e-3 - x")),
        "coarse": pair(text("return 256 * x.bfloat16()"), text("return 257 * x.bfloat16()")),
        "ties": pair(
            text("return (x > 9).long().topk(2).indices"),
            text(
                "found = torch.sort((x > 9).long().flip(0), descending=True, stable=True)",
                "return 2 - found.indices[:2]",
            ),
        ),
        "rounding": pair(text("return x.sum()"), text("return (x.double().sum()).float()")),
    }
    with Evaluator(Shard("", (), "torch", "digest", sys.executable)) as evaluator:
        return dict(zip(cases, evaluator.evaluate(list(cases.values())), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("equal", Verdict.PASS),
        ("different", Verdict.WRONG_RESULT),
        ("shapes", Verdict.WRONG_RESULT),
        ("missing", Verdict.WRONG_RESULT),
        ("left fails", Verdict.CRASH),
        ("no derivative", Verdict.UNSUPPORTED),
        ("right fails", Verdict.CRASH),
        ("both fail", Verdict.INVALID),
        ("unsupported", Verdict.UNSUPPORTED),
        ("rounding", Verdict.PASS),
        ("ties", Verdict.PASS),
    ],
)
def test_a_pair_is_judged_by_its_sides(outcomes: dict[str, Outcome], name: str, verdict: Verdict) -> None:
    assert outcomes[name].verdict is verdict, outcomes[name].summary


def test_a_one_sided_exception_is_a_kind_of_its_own(outcomes: dict[str, Outcome]) -> None:
    seen = outcomes["right fails"].evidence
    assert seen.error.endswith("OneSidedError")
    assert seen.message == "only the right program fails, in run: ValueError: no"
    assert outcomes["left fails"].evidence.message.startswith("only the left program fails")


def test_the_float64_of_both_sides_is_in_the_evidence(outcomes: dict[str, Outcome]) -> None:
    [mismatch] = outcomes["different"].evidence.mismatches
    assert mismatch.compiled_error is not None
    assert mismatch.library_error is not None


def test_bytes_of_a_pair_are_read_back_and_others_rejected() -> None:
    program = pair(text("return x"), text("return +x")).program
    assert EquivalentPair.from_bytes(program.to_bytes()) == program
    with pytest.raises(CaseFormatError):
        EquivalentPair.from_bytes(program.to_bytes().replace(b'"left"', b'"wrong"'))
    with pytest.raises(CaseFormatError):
        EquivalentPair.from_bytes(program.to_bytes() + b" ")


def test_bytes_that_were_checked_before_give_the_same_program() -> None:
    programs: list[Any] = [pair(text("return x"), text("return +x")).program, text("return x")]
    for program in programs:
        again = checked_program(program.kind, program.to_bytes())
        assert again == program


@pytest.mark.parametrize("name", ["same-padding", "time-major", "inverse"])
def test_a_pair_is_made_anew_from_what_its_rule_rewrote(name: str) -> None:
    api = {"same-padding": "torch.nn.functional.conv2d", "time-major": "torch.nn.LSTM"}.get(
        name, "torch.fft.fft"
    )
    made = pair_for(name, api)
    assert made is not None
    again = pair_of(subject_of(made), name)
    assert again is not None
    assert again.id == made.id
    assert again.provenance == made.provenance


def test_a_smaller_subject_gives_a_smaller_pair() -> None:
    made = pair_for("time-major", "torch.nn.RNN")
    assert made is not None
    subject = subject_of(made)
    [(name, given)] = subject.inputs
    assert isinstance(given, Recipe)
    smaller = pair_of(
        replace(subject, inputs=((name, replace(given, shape=(1, 1, given.shape[2]))),)), "time-major"
    )
    assert smaller is not None
    assert sides_of(smaller)[1] == sides_of(made)[1]


@pytest.mark.parametrize("api", ["torch.full_like", "torch.std_mean", "torch.var_mean"])
def test_only_what_takes_out_is_called_with_it(api: str) -> None:
    """`layout=` in a signature is no `out=`, and two signatures have no `out=` but in their documentation."""
    apis = rule.get("out-argument").apis()
    assert "torch.add" in apis
    assert api not in apis


def test_a_difference_has_a_verdict_by_the_bounds_of_eagle_as_well(outcomes: dict[str, Outcome]) -> None:
    """Its absolute bound is a thousand times the default, whose relative one for bfloat16 is the wider."""
    assert outcomes["different"].evidence.eagle == "wrong_result"
    assert (outcomes["slight"].verdict, outcomes["slight"].evidence.eagle) == (Verdict.WRONG_RESULT, "pass")
    assert (outcomes["coarse"].verdict, outcomes["coarse"].evidence.eagle) == (Verdict.PASS, "wrong_result")
    assert outcomes["equal"].evidence.eagle == ""


def test_pairs_that_compile_come_after_the_others_of_a_call() -> None:
    wanted = "optimized-compile,optimized-tvm,views,vmap"
    found = [one.name for one in rules_by_api(rule.select(wanted))["torch.exp"]]
    assert found == ["views", "vmap", "optimized-compile", "optimized-tvm"]


@pytest.mark.parametrize("options", [{}, {"dtype": Dtype("float64")}], ids=["given", "computed"])
def test_openvino_is_not_compared_in_float64_which_it_computes_in_float32(options: dict[str, Any]) -> None:
    given = {"input": draws.uniform(Rng(0), (3,), "float32" if options else "float64", 1000.0)}
    made = make_pair(rule.get("optimized-openvino"), draws.call_case("torch.sum", given, options))
    assert made is not None
    with pytest.raises(NotImplementedError, match="float64 is computed in float32"):
        run_side(sides_of(made)[1], made)


@pytest.mark.filterwarnings("ignore")  # torch's, of itself
@pytest.mark.parametrize("optimizer", ["onnxruntime", "openvino", "tvm"])
@pytest.mark.parametrize("api", ["torch.ones_like", "torch.full_like"])
def test_an_input_that_nothing_reads_may_be_dropped(optimizer: str, api: str) -> None:
    """OpenVINO's frontend does so."""
    given = {"input": draws.uniform(Rng(0), (3,))}
    options = {"fill_value": 2.0} if api.endswith("full_like") else {}
    made = make_pair(rule.get(f"optimized-{optimizer}"), draws.call_case(api, given, options))
    assert made is not None
    left, right = (run_side(side, made) for side in sides_of(made))
    assert [found.tolist() for found in left] == [found.tolist() for found in right]


@pytest.mark.parametrize("optimizer", ["onnxruntime", "openvino", "tvm"])
def test_an_exported_model_is_not_compared_in_complex_numbers(optimizer: str) -> None:
    part = draws.uniform(Rng(0), (3,))
    made = make_pair(
        rule.get(f"optimized-{optimizer}"), draws.call_case("torch.complex", {"real": part, "imag": part})
    )
    assert made is not None
    with pytest.raises(NotImplementedError, match="exported as reals"):
        run_side(sides_of(made)[1], made)
