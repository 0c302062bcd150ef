from __future__ import annotations

import sys

import pytest

from fuzzing.outcomes import Verdict
from fuzzing.smoke_test import MODELS, run_smoke_test, smoke_case


def test_the_models_are_the_same_each_time() -> None:
    for kind in MODELS:
        assert smoke_case(kind).id == smoke_case(kind).id
        assert not smoke_case(kind).has_reference


@pytest.mark.compiler_onnxruntime
def test_a_compiler_that_works_passes() -> None:
    found = run_smoke_test("onnxruntime", sys.executable, ["OnnxModel", "KerasLayer", "EquivalentModels"])
    assert {kind: outcome.verdict for kind, outcome in found.outcomes.items()} == {
        "OnnxModel": Verdict.PASS,
        "KerasLayer": Verdict.PASS,
    }
    names = {path.rpartition("site-packages/")[2] for path in found.sources}
    assert {"onnxruntime/__init__.py", "keras/__init__.py", "torch/__init__.py"} <= names
