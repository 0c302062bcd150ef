"""Rules that excuse failures excuse no known bug."""

from __future__ import annotations

import pytest

from fuzzing.graph.case_validity import find_case_violations
from tests.benchmarks._findings_corpus import TITLES, read_cases

#: ONNX's own function of AffineGrid has such axes, so compilers meet them.
_ONNX_OWN = {"scalar axes of Unsqueeze, as in ONNX's AffineGrid"}


@pytest.mark.parametrize("compiler", TITLES)
def test_no_rule_forbids_the_model_of_a_finding(compiler: str) -> None:
    cases = read_cases(compiler)
    assert cases
    forbidden = {case.provenance.test: found for case in cases if (found := find_case_violations(case))}
    assert forbidden.keys() <= _ONNX_OWN, forbidden
