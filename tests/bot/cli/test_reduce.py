"""`assay reduce`: a failing case made small, from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from tests.bot.cli.command_helpers import GOOD, assay

BACKEND = str(Path(__file__).parents[2] / "fuzzing" / "reduce" / "faulty_backend.py")
ELU = ("--backend", BACKEND, "--option", "fault=crash-elu")
pytestmark = pytest.mark.compiler_onnxruntime


def failing() -> TestCase:
    graph = """g (float[4,3] x, float[4,3] y) => (float[4,3] z, float[4,3] w) {
        a = Relu(x)  b = Add(a, y)  c = Elu<alpha = 0.5>(b)  z = Tanh(c)  w = Mul(b, y)
    }"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {graph}')
    given = [(name, Tensor.of(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))) for name in "xy"]
    return TestCase(
        OnnxModel(model.SerializeToString()), tuple(given), Provenance("tests", "five", "", "onnx", "1")
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    corpus = Corpus(tmp_path / "corpus")
    corpus.add(failing())
    corpus.add(GOOD)
    return tmp_path


@pytest.mark.slow
def test_one_operator_is_left_and_a_second_try_runs_nothing_again(data: Path) -> None:
    out = data / "small"
    ran = assay(data, "reduce", failing().id[:12], *ELU, "--out", out, "--json")
    assert ran.code == 1, ran.err
    result = ran.result
    assert (result["from"], result["minimal"], result["confirmed"]) == (failing().id, True, True)
    assert result["before"][0] == 5
    assert result["after"][0] == 1
    small = Corpus(out / "corpus").get(result["id"])
    [node] = onnx.load_from_string(small.program.to_bytes()).graph.node
    assert (node.op_type, len(node.attribute)) == ("Elu", 0)
    assert (result["traits"]["pattern"], result["traits"]["operators"]) == ("Elu", ["Elu"])
    again = assay(data, "reduce", failing().id[:12], *ELU, "--out", out, "--json").result
    assert again["id"] == result["id"]
    assert (again["runs"], again["replayed"]) == (0, result["runs"])


def test_people_are_told_what_is_left_and_where(data: Path) -> None:
    folder = Corpus(data / "corpus").folder(failing().id)
    ran = assay(data / "elsewhere", "reduce", folder, *ELU)
    assert ran.code == 1, ran.err
    assert "crash on faulty" in ran.out
    assert "operators    5 → 1" in ran.out
    assert "; minimal" in ran.out
    assert str(data / "elsewhere" / "reduced" / failing().id[:16]) in ran.out


def test_a_budget_that_is_spent_is_said(data: Path) -> None:
    ran = assay(data, "reduce", failing().id, *ELU, "--runs", "1")
    assert ran.code == 1, ran.err
    assert "stopped at the budget" in ran.out


def test_of_what_fails_only_in_a_used_process_one_thing_is_said(data: Path) -> None:
    ran = assay(data, "reduce", failing().id, "--backend", BACKEND, "--option", "fault=stale-elu")
    assert ran.code == 1, ran.err
    assert "not reduced: the smallest candidate did not fail in a fresh process" in ran.out
    assert "operators    5 → 5" in ran.out
    for other in ("minimal", "budget"):
        assert other not in ran.out


def test_a_case_that_passes_is_the_callers_mistake(data: Path) -> None:
    ran = assay(data, "reduce", GOOD.id, *ELU)
    assert ran.code == 2
    assert "nothing to reduce" in ran.err


#: Stands in the real one's place: what becomes of a module is what it leaves in sys.modules.
FAULTY = """
import os, sys
here = os.path.dirname(__file__)
sys.path.remove(here)
del sys.modules["onnxruntime"]
import onnxruntime
sys.path.insert(0, here)

class Session(onnxruntime.InferenceSession):
    def __init__(self, model, *rest, **given):
        if b"Elu" in model:
            raise RuntimeError("cannot lower Elu")
        super().__init__(model, *rest, **given)

onnxruntime.InferenceSession = Session
"""


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """The interpreter of an environment whose onnxruntime fails, and which holds nothing of Assay."""
    folder = tmp_path / "faulty"
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "here.pth").write_text(str(Path(onnx.__file__).parents[1]))  # no .pth of that folder is read
    (packages / "onnxruntime.py").write_text(FAULTY)
    return folder / "bin" / "python"


def test_the_reproducer_runs_without_assay(data: Path, faulty: Path) -> None:
    ran = assay(
        data, "reduce", failing().id, "--backend", "onnxruntime", "--python", faulty, "--guarded", "--json"
    )
    assert ran.code == 1, ran.err
    assert (ran.result["after"][0], ran.result["confirmed"]) == (1, True)

    def pasted(python: str | Path, *words: str) -> subprocess.CompletedProcess[str]:
        command = [python, "-I", *words]
        return subprocess.run(command, cwd=data, capture_output=True, text=True, timeout=600, check=False)

    assert "No module named 'fuzzing'" in pasted(faulty, "-c", "import fuzzing").stderr
    for script in (ran.result["reproducer"], ran.result["guarded"]):
        shown = pasted(faulty, script)
        assert shown.returncode == 1, shown.stdout + shown.stderr
        assert "cannot lower Elu" in shown.stdout + shown.stderr
        right = pasted(sys.executable, script)
        assert right.returncode == 0, right.stdout + right.stderr
    assert len(Path(ran.result["reproducer"]).read_text().splitlines()) <= 25


@pytest.mark.slow
def test_killed_and_begun_again_it_ends_the_same(data: Path) -> None:
    command = [sys.executable, "-P", "-m", "bot.cli", "reduce", failing().id, *ELU, "--out", str(data / "a")]
    env = os.environ | {"ASSAY_DATA_DIR": str(data)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not _lines(data / "a"):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        process.kill()
    known = _lines(data / "a")
    result = assay(data, "reduce", failing().id, *ELU, "--out", data / "a", "--json").result
    whole = assay(data, "reduce", failing().id, *ELU, "--out", data / "b", "--json").result
    assert result["id"] == whole["id"]
    assert result["runs"] + result["replayed"] == whole["runs"]
    assert known <= result["replayed"] <= whole["runs"]


def _lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.journal"))
