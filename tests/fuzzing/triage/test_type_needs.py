"""Which element types make two bugs, and which make one."""

from __future__ import annotations

import pytest

from bot.campaigns.classify.bug_matching import KnownBug, match_bug_keys
from fuzzing.triage.signature import Signature, compute_signature, explains
from fuzzing.triage.traits import Traits
from tests.fuzzing.triage.outcomes_kit import wrong_result


def signed(
    dtypes: str, *needs: str, proven: tuple[str, ...] = (), frontend: str = "ONNX", operator: str = "Cast"
) -> Signature:
    """Of a reduced case of one operator whose output is wrong."""
    traits = Traits(operator, tuple(dtypes.split()), tuple(sorted(needs)), (operator,), proven=proven)
    return compute_signature(wrong_result(), "", frontend, traits)


#: A failure as known by the plainest type that shows it, and in another type.
SAME = {
    "halves": (signed("float", "float16"), signed("bfloat16", "bfloat16")),
    "a cast to float8": (signed("float", "float8_e4m3fn"), signed("float", "float8_e5m2fnuz")),
    "a cast from float8": (
        signed("float8_e4m3fn", "float8_e4m3fn"),
        signed("float8_e5m2", "float8_e5m2"),
    ),
    "beside float64": (signed("float", "float64"), signed("bfloat16", "bfloat16", "float64")),
    "unsigned integers": (signed("uint", "uint8"), signed("uint", "uint32")),
    "floats": (signed("float", "float64"), signed("float", "float16")),
    "unsigned for signed integers": (signed("int", "int32"), signed("uint", "uint8")),
    "integers": (signed("float"), signed("int")),
    "a call": (
        signed("float", frontend="PyTorch", operator="torch.abs"),
        signed("bfloat16", frontend="PyTorch", operator="torch.abs"),
    ),
}


@pytest.mark.parametrize(("plain", "odd"), SAME.values(), ids=SAME)
def test_a_type_of_which_nothing_is_proven_stands_for_a_plainer_one(plain: Signature, odd: Signature) -> None:
    """A bug of an earlier release, which did not try the plainer type, is found by its old key."""
    assert plain.key != odd.key
    assert explains(plain, odd)
    assert not explains(odd, plain)
    assert match_bug_keys([plain], [KnownBug(odd.key, odd.fields)]) == [odd.key]
    assert match_bug_keys([odd], [KnownBug(plain.key, plain.fields)]) == [plain.key]
    assert match_bug_keys([odd, plain], []) == [plain.key] * 2


#: Signatures of which neither explains the other.
OTHER = {
    "to and from float8": (signed("float", "float8_e4m3fn"), signed("float8_e5m2", "float8_e5m2")),
    "a float8 that shows it alone": (
        signed("float", "float8_e4m3fn"),
        signed("float", "float8_e4m3fnuz", proven=("float8_e4m3fnuz",)),
    ),
    "a half that shows it alone": (
        signed("float", "float16"),
        signed("bfloat16", "bfloat16", proven=("bfloat16",)),
    ),
    "integers that show it alone": (signed("float"), signed("int", proven=("int",))),
    "calls of integers": (
        signed("float", frontend="PyTorch", operator="torch.abs"),
        signed("int", frontend="PyTorch", operator="torch.abs"),
    ),
    "kinds": (signed("float", "float16"), signed("float", "float8_e4m3fn")),
    "unsigned integers that show it alone": (
        signed("int"),
        signed("uint", "uint8", proven=("uint", "uint8")),
    ),
    "bool": (signed("float"), signed("bool")),
}


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_other_types_make_another_bug(one: Signature, other: Signature) -> None:
    assert not explains(one, other)
    assert not explains(other, one)


def test_a_type_that_is_proven_makes_no_further_bug_of_a_common_one() -> None:
    """Its numbers show more: of float16 the same rounding is a larger error."""
    assert explains(signed("float"), signed("float", "float16", proven=("float16",)))


def test_an_output_of_a_wrong_type_is_known_by_the_plainer_one() -> None:
    plain, odd = (
        compute_signature(
            wrong_result("type", detail=f"float32 instead of {half}"),
            "",
            "ONNX",
            Traits("Shrink", (kind,), (half,)),
        )
        for half, kind in (("float16", "float"), ("bfloat16", "bfloat16"))
    )
    assert explains(plain, odd)
