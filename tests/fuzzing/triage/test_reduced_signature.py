"""Signatures of reduced cases: what is part of them, and which explains which."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.triage.signature import Signature, compute_key, compute_signature, explains
from fuzzing.triage.title import MAX_TITLE
from fuzzing.triage.traits import Traits
from tests.fuzzing.triage.outcomes_kit import wrong_result

NEEDS = st.frozensets(st.sampled_from(["rank 1", "Gemm.mode=a", "Gemm.beta", "zero-size"]))
MESSAGE = (
    "cannot lower node 'v{number}' at 0x{address:x}: /opt/x{number}/lower.cc:{line}: no kernel, seed {number}"
)


def crash(message: str = "x", component: str = "") -> Outcome:
    seen = Evidence(error="ValueError", message=message, component=component)
    return Outcome("0" * 64, "tvm", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)


def signed(needs: frozenset[str] = frozenset(), pattern: str = "Gemm", message: str = "x") -> Signature:
    return compute_signature(crash(message), "", reduced=Traits(pattern, ("float",), tuple(sorted(needs))))


def test_what_is_left_stands_in_for_what_the_case_was_made_to_test() -> None:
    traits = Traits("Reshape(Transpose)", ("float",), ("rank 1",))
    one, other = (compute_signature(crash(), operator, reduced=traits) for operator in ("Add", ""))
    assert one == other
    assert one.title == "[ONNX] Reshape(Transpose): conversion fails: ValueError: x"
    assert one.fields == compute_signature(crash(), "Reshape(Transpose)").fields | {
        "dtypes": ["float"],
        "needs": ["rank 1"],
        "component": "",
        "proven": [],
    }


def test_the_key_is_frozen() -> None:
    """Bugs are filed under keys: changing them files every open bug again."""
    assert signed(frozenset({"rank 1"})).key == "eb21286859a43a3a"


@pytest.mark.parametrize(
    "other",
    [
        compute_signature(crash(component="lowering"), "", reduced=Traits("Gemm", ("float",))),
        compute_signature(crash(), "", reduced=Traits("Gemm", ("int",), proven=("int",))),
        compute_signature(crash(), "", reduced=Traits("Conv", ("float",))),
        compute_signature(crash("y"), "", reduced=Traits("Gemm", ("float",))),
        compute_signature(crash(), "Gemm"),
    ],
)
def test_of_different_symptoms_patterns_types_and_components_none_explains_another(other: Signature) -> None:
    assert not explains(signed(), other)
    assert not explains(other, signed())


@given(NEEDS, NEEDS, NEEDS)
def test_to_explain_is_a_partial_order(
    one: frozenset[str], two: frozenset[str], three: frozenset[str]
) -> None:
    a, b, c = signed(one), signed(two), signed(three)
    assert explains(a, a)
    assert not (explains(a, b) and explains(b, a)) or a == b
    assert not (explains(a, b) and explains(b, c)) or explains(a, c)
    assert explains(a, b) == (one <= two and "Gemm.mode=a" not in two - one)


def test_the_default_algorithm_explains_no_failure_of_another() -> None:
    """OpenVINO's RoiAlign drops samples on a border, and takes too few where a mode lets that show."""
    one, two = signed(), signed(frozenset({"Gemm.mode=a", "rank 1"}))
    assert not explains(one, two)
    assert explains(signed(frozenset({"Gemm.mode=a"})), two)
    assert explains(*(replace_frontend(each, "torch") for each in (one, two)))


def test_an_operand_is_an_input_or_an_initializer() -> None:
    """The types of initializers are no field, so inputs of further types make no other bug."""
    one, two = (
        compute_signature(crash(), "", reduced=Traits("AffineGrid", types))
        for types in (("float",), ("float", "int"))
    )
    assert (explains(one, two), explains(two, one)) == (True, False)
    calls = [replace_frontend(each, "torch") for each in (one, two)]
    assert not explains(*calls), "a call has all its operands as inputs"


WRONG = wrong_result()


def call(api: str, part: str = "", needs: tuple[str, ...] = ()) -> Signature:
    """Of a reduced call, and of the part of it that is wrong by itself."""
    root = None
    if part:
        inner = {"operator": part, "dtypes": ["float"], "needs": list(needs)}
        shown = compute_signature(WRONG, "").fields
        root = {name: shown[name] for name in ("phase", "verdict", "error", "complaint", "frames")} | inner
    traits = Traits(api, ("float",), (f"{api} parameter 1",), (api,), root)
    return compute_signature(WRONG, api, "PyTorch", traits)


def test_calls_with_one_wrong_part_are_one_bug() -> None:
    one, other = call("torch.std", "var"), call("torch.var_mean", "var", ("var.dim",))
    assert (explains(one, other), explains(other, one)) == (True, False), "what the part needs decides"
    assert one.fields["operator"] == "torch.std"
    assert one.title.startswith("[PyTorch] torch.std (var): ")
    assert not explains(one, call("torch.std", "sqrt"))


def test_a_call_whose_part_is_not_known_is_the_bug_of_that_call() -> None:
    """It was reduced by an earlier Assay, or there was no time left for its parts."""
    known, fresh = call("torch.std"), call("torch.std", "var")
    assert explains(known, fresh)
    assert explains(fresh, known)
    assert not explains(known, call("torch.var_mean", "var"))


def test_a_method_in_a_program_is_the_function_that_a_call_names() -> None:
    one, other = (
        compute_signature(
            wrong_result("shape"), "", "PyTorch", Traits(name, ("float",), ("rank 1",), (name,))
        )
        for name in ("squeeze", "torch.Tensor.squeeze")
    )
    assert explains(one, other)
    assert explains(other, one)


def test_of_an_output_of_a_wrong_shape_the_type_tells_nothing_more() -> None:
    """OpenVINO's `kthvalue`: of integers the type is right by chance."""

    def shown(*mismatches: Mismatch) -> Signature:
        outcome = replace(wrong_result(), evidence=Evidence(mismatches=mismatches))
        return compute_signature(outcome, "", "PyTorch", Traits("torch.kthvalue", ("float",)))

    shape, kind = Mismatch("y", "shape", ""), Mismatch("y", "type", "float32 instead of int64")
    assert explains(shown(shape), shown(shape, kind))
    assert explains(shown(shape, kind), shown(shape))
    assert not explains(shown(kind), shown(shape))


LESS = (
    "Check 'num_inputs >= min_inputs' failed at "
    "src/frontends/pytorch/src/utils.cpp:55:\nGot less inputs 2 than expected 3\n"
)
SCALAR = "Exception from src/core/src/shape_util.cpp:66:\nAccessing out-of-range dimension\n"


def refused(api: str, part: str, reason: str = LESS, *, reduced: bool = True) -> Signature:
    """Of a call, a part of which OpenVINO does not convert."""
    message = (
        "Check 'false' failed at src/unconverted_ops_report.cpp:151:\nModel wasn't fully converted. Failed "
        f"operations detailed log:\n-- aten.{part}.default with a message:\nException happened during "
        f"conversion of operation {part}/aten.{part}.default with schema NONE\n{reason}"
    )
    folder = "openvino/tools/ovc"
    stack = (f"{folder}/convert_impl.py:prepare_ir", f"{folder}/moc_frontend/pipeline.py:moc_pipeline")
    seen = Evidence(error="OpConversionFailure", message=message, traceback=stack)
    outcome = Outcome("0" * 64, "openvino", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
    return compute_signature(
        outcome, api, "PyTorch", Traits(api, ("float",), (), (api,)) if reduced else None
    )


@pytest.mark.parametrize("reduced", [True, False])
def test_calls_of_one_operator_that_is_not_converted_are_one_bug(*, reduced: bool) -> None:
    """torch.linalg.norm calls vector_norm, which OpenVINO gives too few inputs."""
    one, other = (
        refused(f"torch.linalg.{name}", "linalg_vector_norm", reduced=reduced)
        for name in ("norm", "vector_norm")
    )
    assert explains(one, other)
    assert explains(other, one)
    assert "linalg.norm (linalg_vector_norm)" in one.title
    assert not explains(one, refused("torch.linalg.norm", "linalg_matrix_norm", reduced=reduced))
    earlier = {name: value for name, value in one.fields.items() if name not in ("root", "proven")}
    assert explains(Signature(compute_key(earlier), "", earlier), one)


@pytest.mark.parametrize("reduced", [True, False])
def test_each_operator_whose_converter_builds_what_is_refused_is_a_bug(*, reduced: bool) -> None:
    """OpenVINO said of `amax`, `index_select` and `vector_norm` of a scalar the same."""
    one, other = (refused("torch.norm", part, SCALAR, reduced=reduced) for part in ("amax", "index_select"))
    assert not explains(one, other)
    assert explains(one, refused("torch.aminmax", "amax", SCALAR, reduced=reduced))


PLACE = ("tvm/onnx_frontend.py:from_onnx", "tvm/onnx_frontend.py:Attention._impl_v1")


LONG = "'tensor.cast' op operand type and result type are cast incompatible"


@pytest.mark.parametrize(
    ("message", "traceback", "verdict", "same"),
    [
        ("'n'", PLACE, Verdict.CRASH, True),
        (LONG, (), Verdict.CRASH, True),
        ("'n'", (), Verdict.CRASH, False),
        ("", (), Verdict.WRONG_RESULT, False),
    ],
)
def test_types_tell_no_exceptions_of_one_message_and_place_apart(
    message: str, traceback: tuple[str, ...], verdict: Verdict, *, same: bool
) -> None:
    mismatches = (Mismatch("y", "value", "", got="1", want="2"),) if verdict is Verdict.WRONG_RESULT else ()
    raised = "" if mismatches else "KeyError"
    seen = Evidence(error=raised, message=message, traceback=traceback, mismatches=mismatches)
    outcome = Outcome("0" * 64, "tvm", "t", "CPU", verdict, Phase.CONVERT, "s", evidence=seen)
    one, other = (
        compute_signature(outcome, "", reduced=Traits("Attention", (kind,), proven=(kind,)))
        for kind in ("float", "bfloat16")
    )
    assert (one.key == other.key) is same
    assert explains(one, other) is explains(other, one) is same


def died(signal: str, native: str, kind: str) -> Signature:
    """Of a process that a signal ended in a call of linspace by a number of this kind."""
    seen = Evidence(signal=signal, native=native)
    outcome = Outcome("0" * 64, "openvino", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
    return compute_signature(outcome, "", "PyTorch", Traits("torch.linspace", (kind,)))


def test_types_tell_no_deaths_in_one_call_apart() -> None:
    native = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f8b (most recent call first):\n"
        '  File "/p/openvino/tools/ovc/moc_frontend/moc_emit_ir.py", line 20 in moc_emit_ir\n'
    )
    one, other = died("SIGSEGV", native, "float"), died("SIGSEGV", native, "int")
    assert one.fields["frames"]
    assert explains(one, other)
    assert explains(other, one)
    assert not explains(died("SIGSEGV", "", "float"), died("SIGSEGV", "", "int")), "nothing is known of where"
    assert not explains(one, died("SIGABRT", native, "float"))


@pytest.mark.parametrize("frontend", ["ONNX", "PyTorch"])
def test_a_bug_known_with_types_is_that_of_the_same_exception_without_them(frontend: str) -> None:
    seen = Evidence(error="KeyError", message="'n'", traceback=PLACE)
    outcome = Outcome("0" * 64, "tvm", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
    fresh = compute_signature(outcome, "", frontend, Traits("Attention", ("float",)))
    fields = fresh.fields | {"dtypes": ["float"]}
    assert explains(fresh, Signature(compute_key(fields), "", fields))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("torch.erfinv", "torch.Tensor.erfinv", True),
        ("torch.Tensor.erfinv", "torch.special.erfinv", True),
        ("Tensor.nonzero", "nonzero", True),
        ("torch.true_divide", "torch.Tensor.div", True),
        ("torch.Tensor.arctan2_", "torch.Tensor.atan2_", True),
        ("relu(multiply)", "relu(mul)", True),
        ("torch.less", "torch.less_equal", False),
        ("torch.nn.functional.fix", "torch.nn.functional.trunc", False),
        ("torch.Tensor.add", "torch.Tensor.add_", False),
        ("torch.nn.functional.pad", "torch.Tensor.pad", False),
        ("torch.nn.Hardswish", "torch.nn.functional.hardswish", True),
        ("nn.MaxPool2d", "torch.nn.functional.max_pool2d", True),
        ("torch.nn.MaxPool2d", "torch.nn.functional.max_pool1d", False),
        ("nn.functional.upsample_nearest", "torch.nn.functional.interpolate", True),
        ("torch.nn.UpsamplingNearest2d", "torch.nn.Upsample", True),
        ("torch.nn.functional.upsample_bilinear", "torch.nn.functional.interpolate", False),
        ("torch.nn.functional.relu", "torch.nn.functional.relu6", False),
    ],
)
def test_a_function_and_the_method_or_module_of_its_name_are_one_api(
    one: str, other: str, *, same: bool
) -> None:
    traits = (Traits(api, ("float",)) for api in (one, other))
    first, second = (
        replace_frontend(compute_signature(crash(), "", reduced=each), "torch") for each in traits
    )
    assert explains(first, second) is explains(second, first) is same
    unreduced = [compute_signature(crash(), api, "PyTorch") for api in (one, other)]
    assert (unreduced[0].key == unreduced[1].key) is same


def replace_frontend(signature: Signature, frontend: str) -> Signature:
    fields = signature.fields | {"frontend": frontend}
    return Signature(compute_key(fields), "", fields)


@given(NEEDS, st.text(max_size=60))
def test_a_signature_outlives_a_journey_through_json(needs: frozenset[str], pattern: str) -> None:
    signature = signed(needs, pattern)
    fields: dict[str, Any] = json.loads(json.dumps(signature.fields))
    assert (fields, compute_key(fields)) == (signature.fields, signature.key)
    assert len(signature.title) <= MAX_TITLE


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 48), st.integers(1, 99_999))
def test_numbers_addresses_lines_and_seeds_in_a_message_make_no_difference(
    number: int, address: int, line: int
) -> None:
    moved = signed(message=MESSAGE.format(number=number, address=address, line=line))
    assert moved == signed(message=MESSAGE.format(number=1, address=1, line=1))


@pytest.mark.parametrize(
    "text", ["node v{}: no kernel", "cannot lower tensor v{}", "input vn{}_Relu is lost"]
)
def test_names_that_our_own_models_give_make_no_difference(text: str) -> None:
    assert signed(message=text.format(3)) == signed(message=text.format(17))


@given(st.permutations(["value", "shape", "missing"]), st.floats(), st.floats())
def test_values_and_the_order_of_outputs_make_no_difference(
    kinds: list[str], got: float, want: float
) -> None:
    def seen(order: list[str], ratio: float) -> Signature:
        wrong = tuple(
            Mismatch(f"y{n}", kind, "", ratio=ratio, got="1", want="2") for n, kind in enumerate(order)
        )
        outcome = Outcome(
            "0" * 64,
            "tvm",
            "t",
            "CPU",
            Verdict.WRONG_RESULT,
            Phase.RUN,
            "s",
            evidence=Evidence(mismatches=wrong),
        )
        return compute_signature(outcome, "", reduced=Traits("Add"))

    assert seen(kinds, got) == seen(sorted(kinds), want)
