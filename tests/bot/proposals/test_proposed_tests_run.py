"""Proposed tests run as the suite's own, on the installed compilers: with a planted fault and without."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bot.proposals.proposal import Proposal, propose
from bot.proposals.tree import folder_tree
from fuzzing.cases import TestCase
from tests.bot.proposals.regressions import cumsum, regression, torch_sum, torch_text
from tests.bot.proposals.trees import make_tree

#: What makes each compiler's cumulative sums wrong, run at the start of Python.
FAULTS = {
    "tvm": """
import tvm
from tvm.relax.frontend.onnx import onnx_frontend
right = onnx_frontend.relax.op.cumsum
op = onnx_frontend.relax.op
op.cumsum = lambda *args, **kwargs: op.negative(right(*args, **kwargs))
""",
    "onnxruntime": """
import onnxruntime
class Session(onnxruntime.InferenceSession):
    def run(self, *args, **kwargs):
        return [-one for one in super().run(*args, **kwargs)]
onnxruntime.InferenceSession = Session
""",
    "inductor": """
import torch._inductor.lowering as lowering
aten = lowering.aten
lowering.lowerings[aten.cumsum.default] = lambda x, axis, dtype=None: lowering.lowerings[aten.neg.default](x)
""",
    "openvino": """
import openvino
right = openvino.CompiledModel.__call__
openvino.CompiledModel.__call__ = lambda *args, **kwargs: [-one for one in right(*args, **kwargs).values()]
""",
    "tinygrad": """
from tinygrad import Tensor
right = Tensor.cumsum
Tensor.cumsum = lambda *args, **kwargs: -right(*args, **kwargs)
""",
}


def run(folder: Path, proposal: Proposal, fault: str = "") -> tuple[int, str]:
    """The exit code and the output of the test under the suite's own runner."""
    planted = folder / "planted"
    planted.mkdir(exist_ok=True)
    # Not in the processes that the compiler starts, which would import it again.
    start = f"import os\nif os.environ.pop('PLANTED', ''):\n{textwrap.indent(fault or 'pass', '    ')}\n"
    (planted / "sitecustomize.py").write_text(start, encoding="utf-8")
    cache = folder / f"cache{len(fault)}"  # compiled code of another run would hide the fault
    inductor = {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    env = os.environ | {"PYTHONPATH": f"{planted}:{folder}", "PLANTED": "1"} | inductor
    env.pop("CI", None)  # PyTorch's runner would write XML for its own CI, with a package that is not here
    done = subprocess.run(
        [sys.executable, *proposal.command], cwd=folder, env=env, capture_output=True, text=True, timeout=400
    )
    return done.returncode, done.stdout + done.stderr


def apply(folder: Path, proposal: Proposal) -> None:
    """Applies the patch with git, which accepts no whitespace errors."""
    command = ["git", "apply", "--whitespace=error-all", "-"]
    subprocess.run(command, cwd=folder, input=proposal.patch(), text=True, check=True, timeout=60)
    assert (folder / proposal.path).read_text(encoding="utf-8") == proposal.after


@pytest.mark.parametrize(
    ("repository", "case"),
    [
        ("tvm", cumsum()),
        ("onnxruntime", cumsum()),
        ("inductor", torch_sum()),
        ("openvino", cumsum()),
        ("openvino", torch_text()),
        ("tinygrad", cumsum()),
    ],
    ids=["tvm", "onnxruntime", "pytorch", "openvino-onnx", "openvino-pytorch", "tinygrad"],
)
def test_it_passes_on_the_compiler_and_fails_with_the_bug(
    repository: str, case: TestCase, tmp_path: Path
) -> None:
    folder = make_tree(tmp_path, repository)
    proposal = propose(regression(repository, case), folder_tree(folder))
    apply(folder, proposal)
    code, output = run(folder, proposal)
    assert code == 0, output
    assert "1 passed" in output or "Ran 1 test" in output, "the runner found the test"
    code, output = run(folder, proposal, FAULTS[repository])
    assert code == 1, output
    assert "AssertionError" in output
