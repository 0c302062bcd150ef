"""Faults for proposed tests: edits of the installed packages' Python that break a documented behavior.

An edit is made when the module is imported, so the installation stays as it is. All edits of a target can be
in force at once, because each breaks another operator.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx.parser

from bot.proposals.proposal import Proposal, propose
from bot.proposals.tree import folder_tree
from fuzzing.cases import Provenance, Tensor, TestCase
from fuzzing.cases.arguments import TensorArg
from fuzzing.cases.torch_call import TorchCall
from tests.bot.proposals.regressions import X, cumsum, regression, torch_sum, torch_text
from tests.bot.reports.test_reproducer import case_of

_TVM = "tvm.relax.frontend.onnx.onnx_frontend"
_TINYGRAD = "tinygrad.nn.onnx"
_INDUCTOR = "torch._inductor.lowering"
_SQUARE = np.arange(1, 10, dtype=np.float32).reshape(3, 3)


@dataclass(frozen=True)
class Plant:
    """A fault of a repository's compiler: `wrong` stands for `right`, which occurs once in the module."""

    repository: str
    case: TestCase
    module: str
    right: str
    wrong: str


def write_all(folder: Path, plants: Sequence[Plant]) -> list[Proposal]:
    """Writes a test for each fault into a repository, one patch after another, as git applies it."""
    written = []
    for one in plants:
        proposal = propose(regression(one.repository, one.case), folder_tree(folder))
        command = ["git", "apply", "--whitespace=error-all", "-"]
        subprocess.run(command, cwd=folder, input=proposal.patch(), text=True, check=True, timeout=60)
        assert (folder / proposal.path).read_text(encoding="utf-8") == proposal.after
        written.append(proposal)
    return written


def joint_command(proposals: Sequence[Proposal]) -> list[str]:
    """The arguments of Python that run tests of one suite in one process."""
    return [*proposals[0].command[:-1], *(one.command[-1] for one in proposals)]


def all_pass(output: str, count: int) -> bool:
    """Whether pytest or unittest says that it ran so many tests; the exit code says that none failed."""
    return f"{count} passed" in output or f"Ran {count} test" in output


def all_fail(output: str, count: int) -> bool:
    """Whether pytest or unittest says that so many tests failed."""
    counts = re.findall(r"(?:failures|errors)=(\d+)", output[output.rfind("FAILED (") :])
    return f"{count} failed" in output or sum(map(int, counts)) == count


def failing(output: str, proposals: Sequence[Proposal]) -> list[bool]:
    """Whether each test failed, as pytest's summary or unittest say; their output may lack its beginning."""
    if all_fail(output, len(proposals)):
        return [True] * len(proposals)
    names = set(re.findall(r"^(?:FAILED \S+::|FAIL: |ERROR: )(\w+)\b", output, re.MULTILINE))
    return [one.name in names for one in proposals]


def planted_start(plants: Sequence[Plant]) -> str:
    """A `sitecustomize.py` with which Python makes the edits in the modules that it imports.

    Processes that the compiler starts import the modules as they are.
    """
    different = dict.fromkeys((one.module, one.right, one.wrong) for one in plants)
    edits = json.dumps(list(different))
    return f"{_START}\n\nplant(json.loads({edits!r}))\n"


_START = """\
import importlib.machinery
import json
import os
import sys


class Loader(importlib.machinery.SourceFileLoader):
    edits = ()

    def get_code(self, name):
        text = self.get_source(name)
        for module, right, wrong in self.edits:
            if module == name:
                assert text.count(right) == 1, f"{name} has {text.count(right)} times {right!r}"
                text = text.replace(right, wrong)
        return compile(text, self.path, "exec", dont_inherit=True)


class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in {module for module, *_ in Loader.edits}:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        spec.loader = Loader(name, spec.origin)
        return spec


def plant(edits):
    if not os.environ.get("PLANTED"):
        os.environ["PLANTED"] = "1"
        Loader.edits = edits
        sys.meta_path.insert(0, Finder)
"""


def _onnx(graph: str, **inputs: np.ndarray) -> TestCase:
    """A model of opset 18, without expected values."""
    program = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}')
    return case_of(program.SerializeToString(), {name: Tensor.of(one) for name, one in inputs.items()}, {})


def _unary(call: str) -> TestCase:
    return _onnx(f"g (float[2,3] x) => (float[2,3] y) {{ y = {call} }}", x=X)


def _torch(api: str, *arguments: object, **keywords: object) -> TestCase:
    """A call of torch; arrays among the arguments are its inputs x0, x1, …"""
    given = {f"x{at}": one for at, one in enumerate(arguments) if isinstance(one, np.ndarray)}
    words = tuple(TensorArg(f"x{at}") if f"x{at}" in given else one for at, one in enumerate(arguments))
    call = TorchCall(api, words, kwargs=tuple(sorted(keywords.items())))
    values = tuple((name, Tensor.of(one)) for name, one in given.items())
    return TestCase(call, values, Provenance("torch-api", "f", api, "torch", "2"))


_TRILU = _onnx(
    "g (float[3,3] x) => (float[3,3] y) <int64 k = {1}> { y = Trilu(x, k) }",
    x=_SQUARE,
)
_DEPTH = _onnx(
    'g (float[1,8,1,2] x) => (float[1,2,2,4] y) { y = DepthToSpace<blocksize = 2, mode = "CRD">(x) }',
    x=np.arange(16, dtype=np.float32).reshape(1, 8, 1, 2),
)

_RESULTS = (
    "openvino.utils.data_helpers.wrappers",
    "        self._dict = _dict\n",
    "        self._dict = {key: -one for key, one in _dict.items()}\n",
)

#: The first of each repository is run in the suite, all by `python -m tests.benchmarks proposed-tests`.
PLANTS = (
    Plant("openvino", cumsum(), *_RESULTS),
    Plant("openvino", torch_text(), *_RESULTS),
    Plant(
        "tvm",
        cumsum(),
        _TVM,
        'axis_input = get_constant(inputs[1], params)\n        exclusive = attr.get("exclusive", 0) != 0',
        "axis_input = get_constant(inputs[1], params)\n        exclusive = False",
    ),
    Plant(
        "tvm",
        _unary("Elu<alpha = 0.5>(x)"),
        _TVM,
        "return relax.expr.const(-alpha) *",
        "return -relax.expr.const(1.0) *",
    ),
    Plant(
        "tvm",
        _unary("Shrink<bias = 0.5, lambd = 1.0>(x)"),
        _TVM,
        "relax.op.where(x > lambd, x - bias",
        "relax.op.where(x > lambd, x + bias",
    ),
    Plant(
        "tvm",
        _unary("ThresholdedRelu<alpha = 3.0>(x)"),
        _TVM,
        "return relax.op.greater(x, relax.const(alpha))",
        "return relax.op.greater_equal(x, relax.const(alpha))",
    ),
    Plant(
        "tvm",
        _unary("LeakyRelu(x)"),
        _TVM,
        'alpha = attr.get("alpha", 0.01)',
        'alpha = attr.get("alpha", 0.1)',
    ),
    Plant("tvm", _TRILU, _TVM, "return relax.op.triu(x, k)", "return relax.op.triu(x, 0)"),
    Plant(
        "tvm",
        _DEPTH,
        _TVM,
        "relax.op.permute_dims(x, [0, 1, 4, 2, 5, 3])",
        "relax.op.permute_dims(x, [0, 1, 4, 3, 5, 2])",
    ),
    Plant(
        "onnxruntime",
        cumsum(),
        "onnxruntime.capi.onnxruntime_inference_collection",
        "        try:\n            return self._sess.run(output_names, input_feed, run_options)",
        "        try:\n            found = self._sess.run(output_names, input_feed, run_options)\n"
        "            return [-one for one in found]",
    ),
    Plant(
        "tinygrad",
        cumsum(),
        _TINYGRAD,
        "return X.cumsum(axis).flip(axis) if reverse",
        "return X.cumsum(axis) if reverse",
    ),
    Plant(
        "tinygrad",
        _unary("HardSigmoid<alpha = 0.5>(x)"),
        _TINYGRAD,
        "return (alpha*x + beta).clip(0, 1)",
        "return (alpha*x + beta).clip(-1, 1)",
    ),
    Plant(
        "tinygrad",
        _unary("ThresholdedRelu<alpha = 3.0>(x)"),
        _TINYGRAD,
        "return (X > alpha).where(X, 0)",
        "return (X >= alpha).where(X, 0)",
    ),
    Plant(
        "tinygrad",
        _unary("Shrink<bias = 0.5, lambd = 1.0>(x)"),
        _TINYGRAD,
        "(x > lambd)*(x-bias)",
        "(x > lambd)*(x+bias)",
    ),
    Plant(
        "tinygrad",
        _unary("LpNormalization<axis = 1, p = 1>(x)"),
        _TINYGRAD,
        "x.abs().sum(axis, keepdim=True) if p == 1",
        "x.sum(axis, keepdim=True) if p == 1",
    ),
    Plant("tinygrad", _TRILU, _TINYGRAD, "return x.triu(k_) if upper", "return x.triu(0) if upper"),
    Plant(
        "tinygrad",
        _DEPTH,
        _TINYGRAD,
        '"b (c h1 w1) h w -> b c (h h1) (w w1)"',
        '"b (c w1 h1) h w -> b c (h h1) (w w1)"',
    ),
    Plant(
        "inductor",
        torch_sum(),
        _INDUCTOR,
        "def cumsum(x, axis=None, dtype=None):",
        "def cumsum(x, axis=None, dtype=None):\n    x = neg(x)",
    ),
    Plant(
        "inductor",
        _torch("torch.nn.functional.glu", _SQUARE[:, :2], dim=1),
        _INDUCTOR,
        "return mul(a, sigmoid(b))",
        "return mul(sigmoid(a), b)",
    ),
    Plant(
        "inductor",
        _torch("torch.flip", X, (1,)),
        _INDUCTOR,
        "idx[dim] = (sizes[dim] - 1) - idx[dim]",
        "idx[dim] = idx[dim] + 0",
    ),
    Plant(
        "inductor",
        _torch("torch.nn.functional.pad", X, (1, 1), value=3.0),
        _INDUCTOR,
        "    if config.inplace_padding:\n",
        "    fill_value = 0\n    if config.inplace_padding:\n",
    ),
    Plant(
        "inductor",
        _torch("torch.select_scatter", X, X[0], 0, -1),
        _INDUCTOR,
        "    src = expand(unsqueeze(src, dim), x.get_size())\n    src_loader",
        "    index = 0\n    src = expand(unsqueeze(src, dim), x.get_size())\n    src_loader",
    ),
    Plant(
        "inductor",
        _torch("torch.mean", X, 1),
        _INDUCTOR,
        "sum_result = sum_(x, axis, keepdim)\n    denom = sympy_product(size[i] for i in axis)",
        "sum_result = sum_(x, axis, keepdim)\n    denom = sympy_product(size)",
    ),
)
