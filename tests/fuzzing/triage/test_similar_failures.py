"""Kinship, on what old releases of OpenVINO and onnxruntime said of the same of ONNX's node tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from fuzzing.reduce.symptom_check import symptom_of
from fuzzing.triage.similar_failures import GENERIC_FILES, explain_similarity

RECORDED = json.loads((Path(__file__).parent / "wordings.json").read_text(encoding="utf-8"))
WORDS = st.lists(
    st.sampled_from(("reshape", "rank", "axis", "pattern", "shape", "broadcast", "of", "the")), max_size=6
)
FILES = st.sampled_from(["", "reshape.cpp", "reshape_shape_inference.hpp", *sorted(GENERIC_FILES)])


def signature_fields(backend: str, row: dict[str, Any]) -> dict[str, Any]:
    evidence = Evidence(error=row["error"], message=row["message"])
    outcome = Outcome(
        case="c" * 64,
        backend=backend,
        toolchain=row["release"],
        device="CPU",
        verdict=Verdict.CRASH,
        phase=Phase(row["phase"]),
        summary="",
        evidence=evidence,
    )
    return symptom_of(outcome)


@pytest.mark.parametrize("pair", RECORDED, ids=[f"{one['test']}-{at}" for at, one in enumerate(RECORDED)])
def test_releases_say_the_same_bug_otherwise_and_other_bugs_too(pair: dict[str, Any]) -> None:
    first, then = (signature_fields(pair["backend"], row) for row in pair["then"])
    assert first != then, "or there would be nothing to ask"
    assert bool(explain_similarity(first, then)) is pair["same"]


def test_it_says_what_it_goes_by() -> None:
    moved = next(one for one in RECORDED if "layer_normalization" in one["test"])
    first, then = (signature_fields(moved["backend"], row) for row in moved["then"])
    assert (
        explain_similarity(first, then)
        == "phase, verdict and the operator's source file (reshape) are the same"
    )


def fields(words: list[str], file: str, **more: str) -> dict[str, Any]:
    frames = [file] if file else []
    known = {"backend": "b", "frontend": "ONNX", "phase": "convert", "verdict": "crash", "error": ""}
    return {**known, "complaint": " ".join(words), "frames": frames, **more}


@given(WORDS, FILES, WORDS, FILES)
def test_it_is_mutual(one: list[str], here: str, other: list[str], there: str) -> None:
    pair = fields(one, here), fields(other, there)
    assert explain_similarity(*pair) == explain_similarity(*reversed(pair))


@pytest.mark.parametrize("change", [{"phase": "run"}, {"verdict": "hang"}, {"backend": "another"}])
def test_what_happened_has_to_be_the_same(change: dict[str, str]) -> None:
    words = ["reshape", "pattern", "broadcast"]
    assert explain_similarity(fields(words, "reshape.cpp"), fields(words, "reshape.cpp"))
    assert not explain_similarity(fields(words, "reshape.cpp"), fields(words, "reshape.cpp", **change))


def test_a_file_that_everything_passes_through_says_nothing() -> None:
    assert not explain_similarity(fields(["rank"], "core.cpp"), fields(["axis"], "core.cpp"))


def test_wrong_results_have_no_words() -> None:
    first, then = (fields([way], "", verdict="wrong_result") for way in ("values", "shapes"))
    assert not explain_similarity(first, then)
