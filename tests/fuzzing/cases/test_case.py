from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from fuzzing.cases import OnnxModel, Provenance, Recipe, Tensor, TestCase, Tolerance
from fuzzing.cases.case import case_from_manifest, parse_manifest
from fuzzing.errors import CaseFormatError
from tests.fuzzing.cases.strategies import cases

CASE = TestCase(
    program=OnnxModel(b"model"),
    inputs=(
        ("x", Tensor.of(np.arange(3, dtype=np.float32))),
        ("r", Recipe("normal", "float32", (2,), 0, 1, 7)),
    ),
    provenance=Provenance("onnx-node-tests", "test_relu", "Relu", "onnx", "1.23.2"),
    expected=(("y", Tensor.of(np.arange(3, dtype=np.float32))),),
    tolerance=Tolerance(1e-3, 1e-7),
)


def _reread(case: TestCase) -> TestCase:
    files = case.files()
    return case_from_manifest(parse_manifest(files["case.json"]), files[case.program.filename])


@given(cases())
def test_cases_round_trip_byte_for_byte(case: TestCase) -> None:
    again = _reread(case)
    assert again == case
    assert again.files() == case.files()
    assert again.id == case.id


def test_the_id_is_frozen() -> None:
    assert CASE.id == "8068404733e2e2c3ddf900c8303e10876d5d287cbca5aeba128521bd5b30143a"


def test_provenance_is_no_part_of_the_id() -> None:
    other = replace(CASE, provenance=Provenance("x", "y", "z", "w", "0", 1))
    assert other.id == CASE.id
    assert other != CASE


@pytest.mark.parametrize(
    "change",
    [
        {"program": OnnxModel(b"other")},
        {"inputs": ()},
        {"expected": None},
        {"expected": ()},
        {"tolerance": None},
        {"tolerance": Tolerance(1e-3, 0)},
        {"comparison": "shapes"},
    ],
    ids=str,
)
def test_everything_else_is_part_of_the_id(change: dict[str, Any]) -> None:
    assert replace(CASE, **change).id != CASE.id


def test_whole_numbers_are_floats_too() -> None:
    assert replace(CASE, tolerance=Tolerance(0, 0)).id == replace(CASE, tolerance=Tolerance(0.0, 0.0)).id


def test_values_draws_recipes() -> None:
    drawn = dict(CASE.values())
    assert drawn["r"] == Recipe("normal", "float32", (2,), 0, 1, 7).draw()
    assert drawn["x"] == CASE.inputs[0][1]


def _manifest() -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(CASE.files()["case.json"])
    return manifest


def _changed(path: str, value: object) -> bytes:
    manifest = _manifest()
    *parents, last = path.split(".")
    place: Any = manifest
    for key in parents:
        place = place[int(key) if isinstance(place, list) else key]
    place[last] = value
    return json.dumps(manifest).encode()


HOSTILE = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "not UTF-8": b'{"format": 1, "\xff": 2}',
    "UTF-16": _manifest().__repr__().encode("utf-16"),
    "UTF-16 JSON": CASE.files()["case.json"].decode().encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + CASE.files()["case.json"],
    "deep nesting": b"[" * 1_000_000,
    "deep objects": b'{"a":' * 1_000_000,
    "NaN": _changed("tolerance.rtol", float("nan")),
    "infinite tolerance": _changed("tolerance.rtol", float("inf")),
    "tolerance beyond float": CASE.files()["case.json"].replace(b'"rtol": 0.001', b'"rtol": 1e999'),
    "huge tolerance": _changed("tolerance.atol", 10**4000),
    "negative tolerance": _changed("tolerance.atol", -1.0),
    "bool tolerance": _changed("tolerance.atol", True),
    "number too long to read": b'{"format": ' + b"1" * 5000 + b"}",
    "other format": _changed("format", 2),
    "format true": _changed("format", True),
    "format 1.0": _changed("format", 1.0),
    "format as text": _changed("format", "1"),
    "extra key": _changed("extra", 1),
    "extra key in program": _changed("program.extra", 1),
    "extra key in tolerance": _changed("tolerance.extra", 1),
    "extra key in provenance": _changed("provenance.extra", 1),
    "extra key in input": _changed("inputs.0.extra", 1),
    "key twice": CASE.files()["case.json"].replace(b"{", b'{"format": 1, ', 1),
    "nested key twice": CASE.files()["case.json"].replace(b'"kind"', b'"size": 5, "kind"'),
    "unknown kind": _changed("program.kind", "Pickle"),
    "kind of another type": _changed("program.kind", ["OnnxModel"]),
    "size as text": _changed("program.size", "5"),
    "size as bool": _changed("program.size", True),
    "wrong size": _changed("program.size", 6),
    "wrong hash": _changed("program.sha256", "0" * 64),
    "hash of another type": _changed("program.sha256", 0),
    "program null": _changed("program", None),
    "inputs null": _changed("inputs", None),
    "inputs an object": _changed("inputs", {}),
    "input a number": _changed("inputs", [1]),
    "input without name": _changed("inputs", [{"absent": True}]),
    "input with a number as name": _changed("inputs", [{"name": 1, "absent": True}]),
    "two inputs of one name": _changed("inputs", [{"name": "x", "absent": True}] * 2),
    "half a surrogate in a name": _changed("inputs", [{"name": "\ud800", "absent": True}]),
    "half a surrogate in provenance": _changed("provenance.test", "\udfff"),
    "a number in provenance": _changed("provenance.test", 1),
    "a float as seed": _changed("provenance.seed", 1.0),
    "unknown comparison": _changed("comparison", "none"),
    "comparison of another type": _changed("comparison", ["values"]),
    "expected an object": _changed("expected", {}),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_manifests_are_refused(text: bytes) -> None:
    with pytest.raises(CaseFormatError) as refused:
        case_from_manifest(parse_manifest(text), b"model")
    assert 0 < len(str(refused.value)) < 2000


def test_every_truncation_is_refused() -> None:
    text = CASE.files()["case.json"]
    for length in range(len(text.rstrip())):
        with pytest.raises(CaseFormatError):
            parse_manifest(text[:length])


def test_every_missing_key_is_refused() -> None:
    for key in _manifest():
        manifest = _manifest()
        del manifest[key]
        with pytest.raises(CaseFormatError):
            parse_manifest(json.dumps(manifest).encode())


def test_the_changed_manifest_is_otherwise_fine() -> None:
    """Guards the table above: it must fail for its changes alone."""
    assert case_from_manifest(parse_manifest(_changed("comparison", "values")), b"model") == CASE
