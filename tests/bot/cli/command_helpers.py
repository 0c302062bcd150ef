"""`assay` as people start it, and data folders that hold exactly the cases a test wants."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

from bot.campaigns.plan.catalog import catalog_path
from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase

SOURCE = "onnx-node-tests"
#: A run of the planted source alone. It takes little time; but with a budget of seconds what was found might
#: not be repeated on a busy machine, where each process takes a second to begin.
SINGLE_SOURCE = ("--source", SOURCE)


@dataclass(frozen=True)
class CommandResult:
    """What a finished command left."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        """The one JSON object on stdout; fails where there is anything else."""
        [line] = self.out.splitlines()
        obj = json.loads(line)
        assert isinstance(obj, dict)
        return obj


def assay(data_dir: Path, *argv: str | Path, env: dict[str, str] | None = None) -> CommandResult:
    """Runs `assay` to its end in a folder of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    data_dir.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bot.cli", *map(str, argv)],
        env=kept | {"ASSAY_DATA_DIR": str(data_dir)} | (env or {}),
        cwd=data_dir,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def add_case(test: str, wrong: float = 0.0) -> TestCase:
    """x + y = z on three numbers; `wrong` is added to the first number that z must be.

    A wrong one wants an output w, too, that the model lacks: where numbers alone differ, the library is asked
    again, and whoever gives what it gives is right.
    """
    graph = "g (float[3] x, float[3] y) => (float[3] z) { z = Add(x, y) }"
    text = '<ir_version: 8, opset_import: ["" : 17]> ' + graph
    x, y = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)
    z = x + y + np.array([wrong, 0, 0], np.float32)
    return TestCase(
        OnnxModel(onnx.parser.parse_model(text).SerializeToString()),
        (("x", Tensor.of(x)), ("y", Tensor.of(y))),
        Provenance(SOURCE, test, "Add", "onnx", "1"),
        expected=(("z", Tensor.of(z)), ("w", Tensor.of(z)))[: 1 + bool(wrong)],
    )


GOOD, WRONG = add_case("test_add_good"), add_case("test_add_wrong", wrong=5.0)


def write_catalogue(data_dir: Path, cases: Iterable[TestCase]) -> Path:
    """A data folder whose only source gives these cases, in this order."""
    shutil.rmtree(data_dir, ignore_errors=True)
    corpus = Corpus(data_dir / "corpus")
    lines = []
    for case in cases:
        corpus.add(case)
        lines.append(json.dumps({"id": case.id}))
    lines.append(json.dumps({"library": "onnx 1", "skipped": {}}))
    path = catalog_path(corpus.root, SOURCE)
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines) + "\n")
    return data_dir


def create_empty_venv(folder: Path) -> Path:
    """An interpreter that holds nothing, not even pip."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"
