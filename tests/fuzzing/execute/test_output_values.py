"""The numbers of a case, told by their own program, of a compiler with planted faults."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.shard import Shard
from tests.fuzzing.execute.test_compiler_comparison import MISCOMPILING, case

pytestmark = pytest.mark.compiler_onnxruntime


def told(folder: Path, of: TestCase) -> tuple[int, list[dict[str, Any]]]:
    corpus = Corpus(folder / "corpus")
    corpus.add(of)
    shard = Shard(str(corpus.root), (of.id,), MISCOMPILING, "", sys.executable)
    path = folder / "shard.json"
    path.write_text(json.dumps(shard.to_json()))
    command = [sys.executable, "-m", "fuzzing.execute.output_values", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_what_was_given_is_told_beside_what_was_expected(tmp_path: Path) -> None:
    code, [output, end] = told(tmp_path, case(fault="sign"))
    assert (code, end) == (0, {"event": "end", "outputs": 1})
    assert (output["output"], output["dtype"], output["shape"]) == ("y", "float32", [2])
    assert output["want"] == pytest.approx([2.718282, 7.389056])
    assert [abs(number) for number in output["got"]] == pytest.approx(output["want"])
    assert [mine != want for mine, want in zip(output["got"], output["want"], strict=True)] == output["wrong"]
    assert any(output["wrong"])


def test_what_is_no_number_is_told_as_text(tmp_path: Path) -> None:
    _, [output, _] = told(tmp_path, case("(float[2] x) => (float[2] y) { z = Sub(x, x)  y = Div(x, z) }"))
    assert output["want"] == output["got"] == ["inf", "inf"]
    assert output["wrong"] == [False, False]


def test_a_program_that_does_not_run_has_no_numbers(tmp_path: Path) -> None:
    code, events = told(tmp_path, case("(float[2] x) => (float[2] y) { y = Exp(x, x) }"))
    assert code == 2
    assert events[0]["kind"] == "usage"
    assert "has no reference" in events[0]["message"]
