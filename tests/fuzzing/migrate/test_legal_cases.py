"""Derived cases that ONNX forbids are skipped, and say which rule they break."""

from __future__ import annotations

import onnx.parser

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.migrate.legal_cases import leave_out_illegal
from fuzzing.migrate.sources import Skip


def range_to(shape: str) -> TestCase:
    """A Range whose limit is a constant of this shape."""
    text = f"() => (int64[n] y) <int64 a = {{1}}, int64{shape} b = {{2}}> {{ y = Range(a, b, a) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    return TestCase(OnnxModel(model.SerializeToString()), (), Provenance("t", "range", "Range", "onnx", ""))


def test_what_breaks_no_rule_is_left_and_the_rest_is_skipped() -> None:
    skipped, legal = Skip("other", "no test"), range_to("")
    assert list(leave_out_illegal([skipped, legal, range_to("[1]")])) == [
        skipped,
        legal,
        Skip("range", "the derived model breaks a rule of ONNX", "Range: operands"),
    ]
