from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.triage.signature import compute_signature
from fuzzing.triage.title import MAX_TITLE
from fuzzing.triage.traits import Traits


def outcome(
    verdict: Verdict = Verdict.CRASH, phase: Phase = Phase.CONVERT, backend: str = "openvino", **evidence: Any
) -> Outcome:
    return Outcome(
        case="0" * 64, backend=backend, toolchain="t", device="CPU", verdict=verdict, phase=phase,
        summary="s", evidence=Evidence(**evidence),
    )  # fmt: skip


def raised(message: str, error: str = "RuntimeError", **more: Any) -> Outcome:
    return outcome(error=error, message=message, **more)


SPLIT = """While validating ONNX node '<Node(Split): AffineGrid_{test}_function_N_{branch}, AffineGrid_{test}_function_C_{branch}>': Check 'dimension_at_axis % num_splits == 0' failed at src/core/shape_inference/include/split_shape_inference.hpp:{line}:
While validating node 'opset1::Split Split_{number} (opset1::Parameter Parameter_{number}[0]:i64[{size}], opset1::Constant Constant_{number}[0]:i64[]) -> (dynamic[...])' with friendly_name 'Split_{number}':
Dimension of data input shape along 'axis': {size} must be evenly divisible by 'num_splits' attribute value: 5
"""  # noqa: E501 - as OpenVINO says it
GATHER = """While validating ONNX node '<Node(GatherElements): AffineGrid_{test}_function_thetaN23>': Check 'output_shape.merge_into(output_shape, indices_pshape)' failed at src/core/shape_inference/include/gather_elements_shape_inference.hpp:56:
While validating node 'opset6::GatherElements GatherElements_{number} (opset1::Parameter Parameter_{number}[0]:f32[2,3,4], opset3::Broadcast AffineGrid_{test}_function_gather_idx_N23[0]:i64[?,2,3]) -> (dynamic[...])' with friendly_name 'GatherElements_{number}':
Shapes [2,3,4] and [?,2,3] are not consistent, `data` and `indices` must have equal or intersecting dimensions, except for the dimension at axis index.2
"""  # noqa: E501
HEAD_2024 = """Exception from src/inference/src/cpp/core.cpp:94:
Check 'false' failed at src/frontends/onnx/frontend/src/frontend.cpp:161:
FrontEnd API failed with GeneralFailure:
Errors during ONNX translation:
"""
HEAD_2025 = HEAD_2024.replace("core.cpp:94", "core.cpp:99").replace("frontend.cpp:161", "frontend.cpp:164")
HEAD_2026 = """Exception from src/inference/src/cpp/core.cpp:105:
Check 'false' failed at src/frontends/common_translators/src/unconverted_ops_report.cpp:151:
FrontEnd API failed with OpConversionFailure:
Model wasn't fully converted. Failed operations detailed log:
-- Split-20 with a message:
"""
TAIL_2026 = "\nSummary:\n-- Conversion is failed for: Split-20\n\n\n"


def _affine(head: str, test: str, tail: str = "\n", **facts: Any) -> str:
    facts = {"line": 55, "number": 50493, "size": 4, "branch": "else"} | facts
    body = (GATHER if "3d" in test else "") + SPLIT
    return head + body.format(test=test, **facts) + tail


AFFINE = [
    _affine(HEAD_2024, "test_affine_grid_2d_expanded"),
    _affine(HEAD_2024, "test_affine_grid_2d_align_corners_expanded", number=50845),
    _affine(HEAD_2024, "test_affine_grid_3d_expanded", number=51205, size=5, branch="then"),
    _affine(HEAD_2024, "test_affine_grid_3d_align_corners_expanded", number=51532, size=5, branch="then"),
    _affine(HEAD_2025, "test_affine_grid_2d_expanded", line=45, number=123),
    _affine(HEAD_2026, "test_affine_grid_2d_expanded", TAIL_2026, line=48, number=9),
]


def test_one_bug_has_one_key_over_tests_and_releases() -> None:
    signatures = [compute_signature(raised(message), "AffineGrid") for message in AFFINE]
    assert len({signature.key for signature in signatures}) == 1
    assert {signature.title for signature in signatures} == {
        "[ONNX] AffineGrid: conversion fails: Dimension of data input shape along 'axis': N must be evenly…"
    }
    assert signatures[0].fields == {
        "backend": "openvino",
        "frontend": "ONNX",
        "phase": "convert",
        "verdict": "crash",
        "operator": "AffineGrid",
        "error": "",
        "complaint": "Check 'dimension_at_axis % num_splits == 0'",
        "frames": ["split_shape_inference.hpp"],
    }


def test_the_key_is_frozen() -> None:
    """Bugs are filed under keys: changing them files every open bug again."""
    assert compute_signature(raised(AFFINE[0]), "AffineGrid").key == "d655daa5cb4bcebd"


def mismatch(kind: str, detail: str = "", got: str = "1.0", want: str = "2.0") -> Mismatch:
    return Mismatch("y", kind, detail, got=got, want=want)


ORT = "/onnxruntime_src/onnxruntime/core/graph/model.cc:7 onnxruntime::Model::Model(int) "
TITLES = {
    "exception with a place": (
        raised("[ONNXRuntimeError] : 1 : FAIL : " + ORT + "x > 0 was false.", "Fail", backend="onnxruntime"),
        "[ONNX] Op: conversion fails: x > N was false. (model.cc)",
    ),
    "exception without": (
        raised("cannot unpack 3 values", "a.ValueError", phase=Phase.COMPILE, traceback=("mlc/x.py:lower",)),
        "[ONNX] Op: compilation fails: ValueError: cannot unpack N values (x.py:lower)",
    ),
    "no text": (raised("", "KeyError", phase=Phase.RUN), "[ONNX] Op: execution fails: KeyError"),
    "signal": (outcome(signal="SIGSEGV", phase=Phase.COMPILE), "[ONNX] Op: compilation dies of SIGSEGV"),
    "abort": (
        outcome(signal="SIGABRT", log="double free or corruption (out)\n"),
        "[ONNX] Op: conversion dies of SIGABRT: double free or corruption (out)",
    ),
    "exit": (outcome(phase=Phase.RUN), "[ONNX] Op: execution ends the process"),
    "hang": (outcome(Verdict.HANG, Phase.COMPILE, log="tick"), "[ONNX] Op: compilation never ends"),
    "memory": (outcome(Verdict.OUT_OF_MEMORY, Phase.RUN), "[ONNX] Op: execution runs out of memory"),
    "values": (
        outcome(Verdict.WRONG_RESULT, Phase.RUN, mismatches=(mismatch("value"), mismatch("value"))),
        "[ONNX] Op: wrong values",
    ),
    "NaN": (
        outcome(Verdict.WRONG_RESULT, Phase.RUN, mismatches=(mismatch("value", got="nan"),)),
        "[ONNX] Op: NaN or infinity on one side",
    ),
    "the largest number": (
        outcome(
            Verdict.WRONG_RESULT,
            Phase.RUN,
            mismatches=(mismatch("value", got="-3.4028235e+38", want="-inf"),),
        ),
        "[ONNX] Op: the largest number for infinity",
    ),
    "infinity wanted": (
        outcome(Verdict.WRONG_RESULT, Phase.RUN, mismatches=(mismatch("value", want="-inf"),)),
        "[ONNX] Op: NaN or infinity on one side",
    ),
    "the word nan": (
        outcome(Verdict.WRONG_RESULT, Phase.RUN, mismatches=(mismatch("value", got="'nan'", want="'inf'"),)),
        "[ONNX] Op: wrong values",
    ),
    "several": (
        outcome(
            Verdict.WRONG_RESULT, Phase.RUN,
            mismatches=(mismatch("shape"), mismatch("missing"), mismatch("type", "int32 instead of int64")),
        ),
        "[ONNX] Op: missing outputs, wrong shapes, wrong type (int32 instead of int64)",
    ),
    "nondeterministic": (outcome(Verdict.NONDETERMINISTIC), "[ONNX] Op: s"),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "title"), TITLES.values(), ids=TITLES.keys())
def test_titles(seen: Outcome, title: str) -> None:
    assert compute_signature(seen, "Op").title == title


def test_different_symptoms_have_different_keys() -> None:
    keys = [compute_signature(seen, "Op").key for seen, title in TITLES.values() if "infinity" not in title]
    assert len(set(keys)) == len(keys) - 1  # "values" and "the word nan" are alike
    assert (
        compute_signature(TITLES["NaN"][0], "Op").key
        == compute_signature(TITLES["infinity wanted"][0], "Op").key
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_largest_number_of_a_type_for_infinity_is_a_difference_of_its_own(dtype: str) -> None:
    """A mask that takes the lowest number for minus infinity is another bug than a mask that is not there."""

    def complaint(got: str) -> str:
        found = outcome(
            Verdict.WRONG_RESULT, Phase.RUN, mismatches=(mismatch("value", got=got, want="-inf"),)
        )
        return str(compute_signature(found, "Op").fields["complaint"])

    lowest = str(np.finfo(dtype).min)
    assert complaint(lowest) == "the largest number for infinity"
    assert {complaint(got) for got in ("0.0", "-1e+30", "nan", "inf")} == {"NaN or infinity on one side"}


@pytest.mark.parametrize(
    "other",
    [
        (raised(AFFINE[0]), "Split", "ONNX"),
        (raised(AFFINE[0], phase=Phase.COMPILE), "AffineGrid", "ONNX"),
        (raised(AFFINE[0], backend="tvm"), "AffineGrid", "ONNX"),
        (raised(AFFINE[0]), "AffineGrid", "torch"),
        (raised(AFFINE[0].replace("% num", "/ num")), "AffineGrid", "ONNX"),
        (raised(AFFINE[0].replace("split_shape", "concat_shape")), "AffineGrid", "ONNX"),
        (outcome(Verdict.HANG), "AffineGrid", "ONNX"),
    ],
)
def test_each_field_counts(other: tuple[Outcome, str, str]) -> None:
    assert compute_signature(*other).key != compute_signature(raised(AFFINE[0]), "AffineGrid").key


def test_toolchain_device_and_case_do_not_count() -> None:
    one = compute_signature(raised(AFFINE[0]), "AffineGrid")
    moved = Outcome.from_json(
        raised(AFFINE[0]).to_json()
        | {
            "toolchain": "other",
            "device": "GPU",
            "case": "f" * 64,
            "durations": {"convert": 9},
            "peak_bytes": 3,
        }
    )
    assert compute_signature(moved, "AffineGrid") == one


def test_where_a_hang_was_found_does_not_count() -> None:
    one, other = (outcome(Verdict.HANG, native=text, log=text) for text in ("Current thread 1:\n", "x"))
    assert compute_signature(one, "Op").key == compute_signature(other, "Op").key


def test_where_nobody_knows_the_operator_none_is_named() -> None:
    assert compute_signature(outcome(signal="SIGBUS"), "").title == "[ONNX] conversion dies of SIGBUS"


def test_the_title_says_why_a_check_failed_where_the_message_does() -> None:
    assert compute_signature(raised(AFFINE[2]), "Op").title == (
        "[ONNX] Op: conversion fails: Dimension of data input shape along 'axis… (split_shape_inference.hpp)"
    )
    bare = raised("Check 'size == 4' failed at b/c.cpp:1:\nShape inference input shapes {[1],[2]}\n")
    assert compute_signature(bare, "Op").title == "[ONNX] Op: conversion fails: the check size == 4 (c.cpp)"
    heading = raised("Exception from a/core.cpp:1:\nException from b/plugin.cpp:54:\nNot Implemented\n")
    assert (
        compute_signature(heading, "Op").title == "[ONNX] Op: conversion fails: Not Implemented (plugin.cpp)"
    )


def test_the_part_that_is_blamed_is_the_place_where_there_are_no_frames() -> None:
    wrong = outcome(
        Verdict.WRONG_RESULT, Phase.RUN, mismatches=(mismatch("value"),), component="basic optimizations"
    )
    assert compute_signature(wrong, "Op").title == "[ONNX] Op: wrong values (basic optimizations)"


@given(
    st.sampled_from(Verdict), st.sampled_from(Phase), st.text(), st.text(), st.text(), st.text(max_size=200)
)
def test_any_outcome_can_be_signed(
    verdict: Verdict, phase: Phase, error: str, message: str, log: str, operator: str
) -> None:
    seen = outcome(verdict, phase, error=error, message=message, log=log, native=log, traceback=(message,))
    signature = compute_signature(seen, operator)
    assert compute_signature(seen, operator) == signature
    assert len(signature.key) == 16
    assert int(signature.key, 16) >= 0
    assert signature.title.isprintable()
    assert 0 < len(signature.title) <= MAX_TITLE


def test_the_title_of_a_pair_names_what_its_one_side_raises() -> None:
    seen = raised("only the right program fails, in convert: TypeError: no such axis", "OneSidedError")
    assert compute_signature(seen, "torch.exp by vmap").title == (
        "[ONNX] torch.exp by vmap: only one of two equal programs runs: TypeError: no such axis"
    )


MIXED = (
    "Binary operators must have the same datatype for both operands. However, R.subtract(R.const(1.0), lv)"
)


def test_what_converters_build_wrongly_is_a_bug_of_each() -> None:
    """TVM infers types of what Selu's and Elu's converters have built, and refuses it."""
    file, native = "tvm/frontend/onnx/onnx_frontend.py", "op_common.h:InferBinary(Call)"
    dispatcher = f"{file}:ONNXGraphImporter._convert_operator"

    def keys(phase: Phase, *traces: tuple[str, ...]) -> int:
        seen = [raised(MIXED, "TypeError", phase=phase, traceback=trace) for trace in traces]
        pairs = zip(seen, ("Selu", "Elu"), strict=True)
        return len({compute_signature(outcome, operator).key for outcome, operator in pairs})

    assert keys(Phase.CONVERT, (dispatcher, native), (dispatcher, native)) == 2
    assert keys(Phase.CONVERT, (f"{file}:Selu.f", native), (f"{file}:Elu.f", native)) == 2
    shared = (dispatcher, f"{file}:Activation.f", native)  # the converter of both
    assert keys(Phase.CONVERT, shared, shared) == 1
    assert keys(Phase.CONVERT, (dispatcher,), (dispatcher,)) == 1
    assert keys(Phase.COMPILE, (dispatcher, native), (dispatcher, native)) == 1


def test_types_do_not_part_what_native_code_refuses() -> None:
    """TVM's Pow of mixed types, once 16 bugs."""
    seen = raised(MIXED, "TypeError", traceback=("x.py:Pow._impl_v13", "op_common.h:InferBinary(Call)"))
    keys = {
        compute_signature(seen, "Pow", reduced=Traits("Pow", (dtype,), ("rank 1",), ("Pow",))).key
        for dtype in ("float", "int")
    }
    assert len(keys) == 1
