"""One Python file that shows a bug to somebody who has numpy, the compiler and nothing else.

What drives a compiler lies in `templates/reproducers/<backend>.py.j2`; the rest is in `base.py.j2`.
A new backend brings one such file, with a `compiler` block that defines load, versions, convert,
build and run.
"""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Mapping

import jinja2

from bot.errors import InternalError
from bot.reports import text
from bot.reports.literals import base64_lines, literal
from bot.reports.templating import environment
from bot.reports.view import Installed
from fuzzing.cases import OnnxModel, Sequence, Tensor, TestCase, Value
from fuzzing.cases.values import CARRIERS, RAW_DTYPES
from fuzzing.oracles.compare import bounds_of
from fuzzing.oracles.profiles import Bounds
from fuzzing.outcomes import Outcome, Verdict

#: Seconds a phase may take; the defaults of `fuzzing.execute.limits`.
LIMITS_S: Mapping[str, float] = {"import": 120, "convert": 60, "compile": 120, "run": 30}
MEMORY_BYTES = 4 << 30

#: Smaller models are shown as they are; only long ones are packed.
PACKED_BYTES = 4096

#: TensorProto.DataType of onnx.proto, for the element types that numpy lacks.
ONNX_TYPES = {
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4_e2m1fn": 23,
    "float8_e8m0fnu": 24,
    "uint2": 25,
    "int2": 26,
}
#: openvino.Type's names for them; it has none for the fnuz kinds.
OV_TYPES = {
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
    "float4_e2m1fn": "f4e2m1",
    "int4": "i4",
    "uint4": "u4",
    "uint2": "u2",
}


def pip_line(toolchain: Installed) -> str:
    """The command that installs what the reproducer needs."""
    return "pip install " + " ".join(shlex.quote(text.one_line(item)) for item in toolchain.requirements)


def render(
    case: TestCase,
    outcome: Outcome,
    toolchain: Installed,
    *,
    filename: str = "reproducer.py",
    limits: Mapping[str, float] = LIMITS_S,
    memory: int = MEMORY_BYTES,
) -> str:
    """The reproducer of an accusing `outcome` of `case`, as the text of one Python file.

    Raises InternalError for what cannot be reproduced so: a verdict that accuses nobody, a program
    that is no ONNX model, a backend without a template.
    """
    if not outcome.verdict.accuses:
        raise InternalError(f"{outcome.verdict.value} is no bug to reproduce")
    if not isinstance(case.program, OnnxModel):
        raise InternalError(f"no reproducer for programs of kind {case.program.kind}")
    try:
        template = environment().get_template(f"reproducers/{outcome.backend}.py.j2")
    except jinja2.TemplateNotFound as error:
        raise InternalError(f"{outcome.backend} has no reproducer: add templates/{error.name}") from None
    inputs = [(name, _dtype(value), literal(value, 8)) for name, value in case.values()]
    expected = _expected(case)
    raw = sorted(RAW_DTYPES.intersection(row[1] for row in (*inputs, *expected)))
    return template.render(
        header=_header(case, outcome, toolchain),
        provenance=_provenance(case),
        pip=pip_line(toolchain),
        filename=filename,
        device=outcome.device,
        verdict=outcome.verdict.value,
        phase=outcome.phase.value,
        error=text.one_line(outcome.evidence.error),
        signal=text.one_line(outcome.evidence.signal),
        compare=case.comparison,
        limits=dict(limits),
        memory=memory,
        carriers={name: CARRIERS[name] for name in raw},
        onnx_types={name: ONNX_TYPES[name] for name in raw if name in ONNX_TYPES},
        ov_types={name: OV_TYPES[name] for name in raw if name in OV_TYPES},
        inputs=inputs,
        expected=expected,
        packed=len(case.program.model) > PACKED_BYTES,
        model=base64_lines(_packed(case.program.model)),
    )


def _packed(model: bytes) -> bytes:
    """Models repeat the names of their tensors again and again; packed they are a tenth."""
    return zlib.compress(model, 9) if len(model) > PACKED_BYTES else model


def _header(case: TestCase, outcome: Outcome, toolchain: Installed) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in toolchain.versions.items())
    phase = outcome.phase.value
    what = {
        Verdict.CRASH: f"crashes in {phase}",
        Verdict.HANG: f"hangs in {phase}",
        Verdict.WRONG_RESULT: "gives a wrong result",
        Verdict.OUT_OF_MEMORY: f"runs out of memory in {phase}",
    }[outcome.verdict]
    operator = case.provenance.operator or "a model"
    summary = text.cut(text.one_line(outcome.summary), 500)
    return f"{outcome.backend} {what}: {operator}\n{summary}\nSeen with {versions}:"


def _provenance(case: TestCase) -> str:
    origin = case.provenance
    return (
        "Found and written by a machine: Assay. "
        f"The model and its expected outputs are {origin.library} {origin.version}'s test {origin.test}."
    )


def _dtype(value: Value) -> str:
    if isinstance(value, Sequence):
        return value.items[0].dtype if value.items else ""
    return value.dtype if isinstance(value, Tensor) else ""


def _expected(case: TestCase) -> list[tuple[str, str, str, float, float]]:
    """The outputs to compare, with the bounds that the oracle applies to each."""
    rows: list[tuple[str, str, str, float, float]] = []
    for name, value in case.expected or ():
        bounds = _bounds(value, case)
        rows.append((name, _dtype(value), literal(value, 8), bounds.rtol, bounds.atol))
    return rows


def _bounds(value: Value, case: TestCase) -> Bounds:
    """One bound for a whole output: a sequence's is its loosest item's."""
    if isinstance(value, Sequence):
        each = [bounds_of(item, case.tolerance) for item in value.items]
        return max(each, key=lambda one: (one.rtol, one.atol), default=Bounds())
    return bounds_of(value, case.tolerance) if isinstance(value, Tensor) else Bounds()
