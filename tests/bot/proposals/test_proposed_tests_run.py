"""Proposed tests run as the suite's own, on the installed compilers: with planted faults and without."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.proposals.proposal import Proposal
from tests.bot.proposals.plants import (
    PLANTS,
    Plant,
    all_fail,
    all_pass,
    joint_command,
    planted_start,
    write_all,
)
from tests.bot.proposals.trees import make_tree

#: Compiled code is not kept for the other run, where it would hide the fault; compiled headers are.
_INDUCTOR = {
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


def run(folder: Path, proposals: Sequence[Proposal], plants: Sequence[Plant] = ()) -> tuple[int, str]:
    """The exit code and the output of the tests in one process of the suite's own runner."""
    planted = folder / "planted"
    planted.mkdir(exist_ok=True)
    (planted / "sitecustomize.py").write_text(planted_start(plants), encoding="utf-8")
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    env = os.environ | {"PYTHONPATH": f"{planted}:{folder}"} | _INDUCTOR | cache
    env.pop("CI", None)  # PyTorch's runner would write XML for its own CI, with a package that is not here
    done = subprocess.run(
        [sys.executable, *joint_command(proposals)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=400,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("repository", "count"),
    [("tvm", 1), ("onnxruntime", 1), ("inductor", 1), ("openvino", 2), ("tinygrad", 1)],
)
def test_they_pass_on_the_compiler_and_fail_with_the_bugs(
    repository: str, count: int, tmp_path: Path
) -> None:
    folder = make_tree(tmp_path, repository)
    plants = [one for one in PLANTS if one.repository == repository][:count]
    proposals = write_all(folder, plants)
    code, output = run(folder, proposals)
    assert code == 0, output
    assert all_pass(output, count), output
    code, output = run(folder, proposals, plants)
    assert code == 1, output
    assert all_fail(output, count), output
    assert "AssertionError" in output
