"""Polygraphy's `debug reduce` for comparison, on the same failures with the same evaluator, counting runs.

Polygraphy runs a command for each candidate. That command sends the path to this process over a socket, so
that no run starts a compiler. Edges that become inputs get the values that flowed through them, as in Assay's
reducer, so only the search differs.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase
from fuzzing.entry_point import note
from fuzzing.execute.evaluator import Evaluator
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.reduce.graphs import GraphState
from fuzzing.reduce.symptom_check import has_symptom

#: Exits with 1 if a candidate fails, as `polygraphy debug` expects.
_CHECK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    line.sendall(sys.argv[2].encode() + b"\\n")
    sys.exit(int(line.makefile().readline()))
"""


@dataclass(frozen=True)
class ReducedModel:
    """The result of a search: operators left, and candidates run."""

    operators: int
    runs: int


def search(
    folder: Path, subject: GraphState, evaluator: Evaluator, wanted: dict[str, Any]
) -> tuple[ReducedModel | None, ReducedModel | None]:
    """The results of bisection and of linear search after it; the latter's runs include both.

    None if polygraphy fails, as it does at operators with omitted inputs.

    folder  made by `pip install --no-deps --target FOLDER polygraphy onnx-graphsurgeon`
    """
    with tempfile.TemporaryDirectory() as scratch:
        first, second, third = (Path(scratch, f"{name}.onnx") for name in ("whole", "bisect", "linear"))
        first.write_bytes(subject.case().program.to_bytes())
        known = {f"v{edge}": subject.values.get(name) for edge, name in subject.graph.names.items()}

        def fails(path: Path) -> bool:
            [outcome] = evaluator.evaluate([_case(onnx.load(path), known, subject.origin)])
            return has_symptom(outcome, wanted)

        bisected = _reduced(folder, "bisect", first, second, fails)
        linear = None if bisected is None else _reduced(folder, "linear", second, third, fails)
    if bisected is None or linear is None:
        return bisected, None
    return bisected, ReducedModel(linear.operators, bisected.runs + linear.runs)


def _case(model: Any, known: dict[str, Any], origin: TestCase) -> TestCase:
    """A candidate with known values of its inputs, random ones otherwise."""
    held = {item.name for item in model.graph.initializer}
    given = []
    for item in model.graph.input:
        if item.name in held:
            continue
        shape = tuple(dim.dim_value for dim in item.type.tensor_type.shape.dim)
        dtype = next(name for name, code in DTYPES.items() if code == item.type.tensor_type.elem_type)
        value = known.get(item.name)
        if not (isinstance(value, (Tensor, Recipe)) and (value.dtype, value.shape) == (dtype, shape)):
            kind = "uniform" if dtype.startswith("float") else "integers"
            value = Recipe(kind, dtype, shape, 0.0, 1.0, 0)
        given.append((item.name, value))
    program = OnnxModel(model.SerializeToString())
    return replace(origin, program=program, inputs=tuple(given), expected=None)


def _reduced(
    folder: Path, mode: str, start: Path, end: Path, fails: Callable[[Path], bool]
) -> ReducedModel | None:
    address = start.with_suffix(f".{mode}")
    check = start.parent / "check.py"
    check.write_text(_CHECK)
    runs = 0
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        command = [sys.executable, str(folder / "bin" / "polygraphy"), "debug", "reduce", str(start)]
        command += ["-o", str(end), "--mode", mode]
        command += ["--check", sys.executable, "-S", str(check), str(address), "polygraphy_debug.onnx"]
        process = subprocess.Popen(
            command,
            cwd=start.parent,
            env=os.environ | {"PYTHONPATH": str(folder), "PATH": os.environ.get("PATH", "")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output: list[str] = []
        reader = threading.Thread(target=lambda: output.append(process.communicate()[0]))
        reader.start()
        listening.settimeout(0.2)
        while reader.is_alive():
            try:
                line, _ = listening.accept()
            except TimeoutError:
                continue
            runs += 1
            with line:
                path = start.parent / line.makefile().readline().strip()
                line.sendall(b"1\n" if fails(path) else b"0\n")
    if not end.exists():
        note(f"polygraphy, {mode}: no model, exit code {process.returncode}: {output[0][-300:]}")
        return None
    return ReducedModel(len(onnx.load(end).graph.node), runs)
