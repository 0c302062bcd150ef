"""TestCase: one self-contained compiler input, and its text form."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Union

from fuzzing import json_encoder
from fuzzing.cases.programs import Program, get_kind
from fuzzing.cases.recipes import Recipe
from fuzzing.cases.values import Value, check_text, value_from_json, value_to_json
from fuzzing.errors import CaseFormatError

FORMAT = 1
#: Ends the name of the test of a reduced case.
_REDUCED = " (reduced)"
_LARGEST = sys.float_info.max
_KEYS = {
    "format", "program", "inputs", "expected", "tolerance", "comparison", "provenance"
}  # fmt: skip
_PROVENANCE_KEYS = ("source", "test", "operator", "library", "version", "seed")

Input = Union[Value, Recipe]
Comparison = Literal["values", "shapes"]


@dataclass(frozen=True)
class Tolerance:
    """Bounds that a source states for its outputs: |got - want| ≤ atol + rtol·|want|."""

    rtol: float
    atol: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rtol", float(self.rtol))  # 0 and 0.0 must give one case id
        object.__setattr__(self, "atol", float(self.atol))


@dataclass(frozen=True)
class Provenance:
    """The origin of a case. Stored with the case and shown in reports, but not part of its identity.

    source            the case source, as in `assay run --source`
    test              the library's name of the test
    operator          the operator under test, in the library's spelling; "" if there is no single one
    library, version  the package the test was taken from
    seed              the generator's seed, if there was one
    """

    source: str
    test: str
    operator: str
    library: str
    version: str
    seed: int | None = None

    @property
    def is_reduced(self) -> bool:
        """Whether Assay reduced the library's test to this case."""
        return self.test.endswith(_REDUCED)

    def reduced(self) -> Provenance:
        """The origin of what a case of this origin was reduced to."""
        return self if self.is_reduced else replace(self, test=self.test + _REDUCED)

    def original_test(self) -> str:
        """The library's name of the test, also of a reduced case."""
        return self.test[: -len(_REDUCED)] if self.is_reduced else self.test


@dataclass(frozen=True)
class TestCase:
    """A program, its inputs, its expected outputs, and its provenance.

    inputs      by name, in the program's order; a value or a recipe
    expected    outputs by name, in order, computed independently of any compiler under test; None if the
                reference must still be run
    tolerance   the source's own bounds, None for the oracle's default
    comparison  "shapes" for programs that draw random numbers: only types and shapes are compared
    """

    __test__ = False  # not a pytest class

    program: Program
    inputs: tuple[tuple[str, Input], ...]
    provenance: Provenance
    expected: tuple[tuple[str, Value], ...] | None = None
    tolerance: Tolerance | None = None
    comparison: Comparison = field(default="values")

    @cached_property
    def id(self) -> str:
        """SHA-256, in hex, of everything but the provenance.

        Equal content from two libraries is one case.
        """
        return manifest_id(self._manifest())

    @property
    def has_reference(self) -> bool:
        """Whether it has expected outputs."""
        return self.expected is not None

    def values(self) -> tuple[tuple[str, Value], ...]:
        """The inputs with all recipes drawn."""
        return tuple(
            (name, given.draw() if isinstance(given, Recipe) else given) for name, given in self.inputs
        )

    def files(self) -> dict[str, bytes]:
        """The case as files by name: `case.json` and the program's own. Deterministic."""
        manifest = self._manifest()
        if "id" not in vars(self):  # a caller that stores a case needs both
            vars(self)["id"] = manifest_id(manifest)
        return {"case.json": _dump(manifest), self.program.filename: self.program.to_bytes()}

    def _manifest(self) -> dict[str, Any]:
        data = self.program.to_bytes()
        prov = {key: getattr(self.provenance, key) for key in _PROVENANCE_KEYS}
        tol = self.tolerance and {"rtol": self.tolerance.rtol, "atol": self.tolerance.atol}
        outputs = None
        if self.expected is not None:
            outputs = [{"name": name} | value_to_json(value) for name, value in self.expected]
        return {
            "format": FORMAT,
            "program": {
                "kind": self.program.kind,
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            },
            "inputs": [{"name": name} | _input_to_json(value) for name, value in self.inputs],
            "expected": outputs,
            "tolerance": tol,
            "comparison": self.comparison,
            "provenance": prov,
        }


_canonical = json_encoder.encoder(ascii_only=False, allow_nan=False, sort_keys=True)


def parse_manifest(text: bytes) -> dict[str, Any]:
    """`case.json` as an object with the right keys; raises CaseFormatError."""
    try:
        obj = _DECODER.decode(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CaseFormatError(f"case.json is not JSON: {error}") from None
    if not isinstance(obj, dict) or type(obj.get("format")) is not int or obj["format"] != FORMAT:
        raise CaseFormatError(f'case.json does not have "format": {FORMAT}')
    if obj.keys() != _KEYS:
        odd = ", ".join(sorted(map(str, obj.keys() ^ _KEYS)))
        raise CaseFormatError(f"case.json has missing or unknown keys: {odd}")
    return obj


def manifest_id(manifest: dict[str, Any]) -> str:
    """The id of the case that a manifest describes."""
    content = {key: value for key, value in manifest.items() if key != "provenance"}
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def program_entry(manifest: dict[str, Any]) -> tuple[type[Program], int, str]:
    """The program's kind, size in bytes and SHA-256 in the manifest."""
    entry = manifest["program"]
    if not isinstance(entry, dict) or entry.keys() != {"kind", "size", "sha256"}:
        raise CaseFormatError("case.json: program needs kind, size and sha256")
    kind, size, digest = entry["kind"], entry["size"], entry["sha256"]
    if not isinstance(kind, str) or type(size) is not int or not isinstance(digest, str):
        raise CaseFormatError("case.json: program's kind, size and sha256 have the wrong types")
    return get_kind(kind), size, digest


def case_from_manifest(manifest: dict[str, Any], program: bytes) -> TestCase:
    """The case of a manifest and its program file; raises CaseFormatError."""
    kind, size, digest = program_entry(manifest)
    if len(program) != size or hashlib.sha256(program).hexdigest() != digest:
        raise CaseFormatError(
            f"{kind.filename} is not what case.json describes: "
            f"{len(program)} bytes for {size}, or other content"
        )
    comparison = manifest["comparison"]
    if comparison not in ("values", "shapes"):
        raise CaseFormatError(f"comparison must be values or shapes, not {comparison!r}")
    expected = manifest["expected"]
    inputs = tuple(_named(item, _input_from_json) for item in _list(manifest, "inputs"))
    if len(dict(inputs)) != len(inputs):
        raise CaseFormatError("case.json: two inputs have the same name")
    return TestCase(
        program=kind.from_bytes(program),
        inputs=inputs,
        expected=None
        if expected is None
        else tuple(_named(item, value_from_json) for item in _list(manifest, "expected")),
        tolerance=_tolerance(manifest["tolerance"]),
        comparison=comparison,
        provenance=_provenance(manifest["provenance"]),
    )


def _dump(manifest: dict[str, Any]) -> bytes:
    """`case.json`: one line for each key, input and output."""
    return (
        "{\n" + ",\n".join([f' "{key}": {_lines(manifest[key])}' for key in sorted(manifest)]) + "\n}\n"
    ).encode()


def _lines(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join([_canonical(item) for item in value]) + "\n ]"
    return _canonical(value)


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys, of which readers may take either."""
    obj = dict(pairs)
    if len(obj) != len(pairs):
        twice = next(key for key in obj if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return obj


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_duplicates)


def _list(manifest: dict[str, Any], key: str) -> list[Any]:
    items = manifest[key]
    if not isinstance(items, list):
        raise CaseFormatError(f"case.json: {key} must be a list")
    return items


def _named(item: object, parse: Any) -> tuple[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise CaseFormatError("case.json: every input and output needs a name")
    rest = {key: value for key, value in item.items() if key != "name"}
    return check_text(item["name"]), parse(rest)


def _input_to_json(value: Input) -> dict[str, Any]:
    return value.to_json() if isinstance(value, Recipe) else value_to_json(value)


def _input_from_json(obj: dict[str, Any]) -> Input:
    return Recipe.from_json(obj) if "recipe" in obj else value_from_json(obj)


def _tolerance(obj: object) -> Tolerance | None:
    if obj is None:
        return None
    if not isinstance(obj, dict) or obj.keys() != {"rtol", "atol"}:
        raise CaseFormatError("case.json: tolerance needs rtol and atol")
    if not all(type(x) in (int, float) and 0 <= x <= _LARGEST for x in obj.values()):
        raise CaseFormatError("case.json: rtol and atol must be finite numbers ≥ 0")
    return Tolerance(float(obj["rtol"]), float(obj["atol"]))


def _provenance(obj: object) -> Provenance:
    if not isinstance(obj, dict) or obj.keys() != set(_PROVENANCE_KEYS):
        raise CaseFormatError(f"case.json: provenance needs {', '.join(_PROVENANCE_KEYS)}")
    texts = [obj[key] for key in _PROVENANCE_KEYS[:-1]]
    seed = obj["seed"]
    if not all(isinstance(text, str) for text in texts) or not (seed is None or type(seed) is int):
        raise CaseFormatError("case.json: provenance has a value of the wrong type")
    for text in texts:
        check_text(text)
    return Provenance(**obj)
