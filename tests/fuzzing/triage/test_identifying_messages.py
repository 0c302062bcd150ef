"""Exceptions whose message and innermost frame are the bug, whatever program meets them."""

from __future__ import annotations

import pytest

from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from fuzzing.triage.signature import UNSORTED, Signature, compute_signature, compute_unsorted_key, explains
from fuzzing.triage.traits import Traits

MODULE = "Could not find input in either buffer or input nodes"
MIXED = (
    "Binary operators must have the same datatype for both operands. However, R.power({one}, y) uses "
    'datatype T.{left} on the LHS (Type of R.Tensor((2,), dtype="{left}")), and datatype T.{right} on the '
    'RHS (Type of R.Tensor((2,), dtype="{right}")).'
)


def signed(
    message: str, operator: str, *needs: str, dtypes: tuple[str, ...] = ("float",), frame: str = "a.py:f"
) -> Signature:
    seen = Evidence(error="RuntimeError", message=message, traceback=("torch/b.py:g", f"torch/{frame}"))
    outcome = Outcome("0" * 64, "tvm", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
    return compute_signature(outcome, operator, reduced=Traits(operator, dtypes, needs))


def test_one_message_of_one_function_is_one_bug_of_all_apis() -> None:
    """143 signatures of one failure had the API's name in the key."""
    one, other = signed(MODULE, "torch.add_"), signed(MODULE, "torch.mul_", "rank 2", dtypes=("int",))
    assert one.key == other.key
    assert one.title != other.title, "people still read which API it was"


def test_types_and_variables_in_a_message_are_the_cases() -> None:
    """Sixteen signatures of one check of TVM's type inference."""
    keys = {
        signed(MIXED.format(one=one, left=left, right=right), operator).key
        for operator, one, left, right in (
            ("Pow", "x", "float32", "int64"),
            ("Pow(Relu)", "lv", "float32", "float64"),
            ("Pow", "x", "int64", "float16"),
        )
    }
    assert len(keys) == 1


def test_a_heading_is_a_message_that_somebody_wrote() -> None:
    """Seven reductions whose list of axes is empty failed in TVM's one reader of attributes."""
    empty = 'Cannot parse attribute: \nname: "axes"\ntype: INTS\n.'
    assert signed(empty, "ReduceL1").key == signed(empty, "ReduceMean", "rank 1").key
    python = "list index out of range"
    assert signed(python, "ReduceL1").key != signed(python, "ReduceMean").key


def test_a_message_of_c10_stands_before_its_frames() -> None:
    """Whatever failed in one file was one bug, named after its list of frames."""
    frames = "(most recent call first):{n}frame #0: c10::Error::Error() + 0x9d (0x7faa0cd7 in libc10.so)"
    place = "Exception raised from throw_symbolic at /pytorch/c10/core/TensorImpl.cpp:340 "
    quoted = "Dynamo failed: call <method cov at 0x7faa>(*('a',)): got RuntimeError('Cannot call {what}\\n"
    texts = [
        f"Cannot call {what}\n{place}{frames}".replace("{n}", "\n") for what in ("numel()", "strides()")
    ] + [
        f"{quoted}{place}{frames}')".replace("{n}", "\\n").replace("{what}", what)
        for what in ("numel()", "strides()")
    ]
    signatures = [signed(text, "torch.cov") for text in texts]
    assert [one.fields["complaint"] for one in signatures] == [
        "Cannot call numel()",
        "Cannot call strides()",
    ] * 2
    assert {tuple(one.fields["frames"]) for one in signatures} == {("TensorImpl.cpp",)}
    assert len({one.key for one in signatures}) == 2


@pytest.mark.parametrize(
    "other",
    [
        signed(MODULE + " of the program", "torch.add_"),
        signed(MODULE, "torch.add_", frame="a.py:h"),
    ],
)
def test_another_message_or_function_is_another_bug(other: Signature) -> None:
    assert not explains(signed(MODULE, "torch.add_"), other)
    assert not explains(other, signed(MODULE, "torch.add_"))


def test_a_short_message_that_names_an_operator_is_one_bug() -> None:
    one, other = signed("no value in Constant", "Constant"), signed("no value in Constant", "Pad(Constant)")
    assert one.key == other.key


@pytest.mark.parametrize(
    "message",
    [
        "bad axis",
        "list index out of range",
        "axis is not Tensor",
        "Check 'node.get_ov_inputs().size() == expected_inputs'",
    ],
)
def test_what_many_operators_may_say_is_a_bug_of_each(message: str) -> None:
    assert signed(message, "Pad").key != signed(message, "Slice").key


def test_failures_of_which_only_an_effect_is_known_belong_to_no_bug() -> None:
    seen = Outcome("0" * 64, "tvm", "t", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "s")
    one, other = compute_signature(seen, "GridSample"), compute_signature(seen, "Conv")
    keys = {compute_unsorted_key(one.fields), compute_unsorted_key(other.fields)}
    assert len(keys) == 1
    assert not keys & {one.key, other.key}
    assert all(key.startswith(UNSORTED) for key in keys)


def test_a_known_wrong_rewrite_keeps_effects_apart() -> None:
    """A bug's own signature, of the reduced pair, does not know it."""

    def signed_by(rewrite: str, reduced: Traits | None = None) -> Signature:
        evidence = Evidence(rewrite=rewrite)
        seen = Outcome("0" * 64, "tvm", "t", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "s", evidence=evidence)
        return compute_signature(seen, f"identity {rewrite}", reduced=reduced)

    one, alike, other = map(signed_by, ("absolute-norm", "absolute-norm", "unit-axes"))
    keys = [compute_unsorted_key(each.fields) for each in (one, alike, other)]
    assert keys[0] == keys[1] != keys[2]
    assert one.fields["rewrite"] == "absolute-norm"
    assert "rewrite" not in signed_by("absolute-norm", Traits("Abs")).fields
    assert "rewrite" not in signed_by("").fields
