"""Old bugs of compilers for `proposed-tests`: programs, and the builds with and without the bug."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser

from bot.proposals.proof import TestBuild
from bot.proposals.regression import Regression
from bot.reports.campaign_view import ToolchainView
from bot.runners import LocalRunner
from bot.toolchains import ReadyToolchain, ToolchainSpec, provision
from fuzzing import backends
from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.triage.onnx_outline import onnx_outline
from fuzzing.triage.onnx_text import onnx_code
from tests.benchmarks.bisection import _collected

DATA = Path(__file__).parent / "proposed_tests_data" / "old_bugs.toml"
#: Programs that every build computes right: their tests have to pass on both.
_CONTROL_MODEL = '<ir_version: 8, opset_import: ["" : 14]> g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }'
_CONTROL_FUNCTION = "def forward(x):\n    return torch.relu(x)"


@dataclass(frozen=True)
class OldBug:
    """A bug, and the verdict of its program on the build with it."""

    name: str
    regression: Regression

    @property
    def shows(self) -> bool:
        """Whether the program fails there."""
        return self.regression.outcome.verdict.is_failure


class OldBugs:
    """The bugs of one compiler.

    pythons  interpreters for "bad" and "good" in place of environments with the releases of the data
    """

    def __init__(self, target: str, data_dir: Path, pythons: Mapping[str, Path | None]) -> None:
        self._target, self._data_dir = target, data_dir
        self._data = read_data()[target]
        # Not the corpus of ONNX's node tests, which are collected into an empty one only.
        self._corpus = Corpus(data_dir / "old-bugs")
        self._bad, self._good = (self._build(one, pythons.get(one)) for one in ("bad", "good"))
        self.bad, self.good = (TestBuild(one.spec.label, one.python) for one in (self._bad, self._good))

    def bugs(self, names: Collection[str] | None = None) -> list[OldBug]:
        """The bugs, or those of these names, as they show on the bad build."""
        tests = self._data.get("tests", ())
        ids = _collected(self._data_dir) if tests else {}
        node_tests = Corpus(self._data_dir / "corpus")
        cases = [(name, _with_first_opset(node_tests.get(ids[name]))) for name in tests]
        cases += [(one["name"], _case(one)) for one in self._data.get("bug", ())]
        wanted = {name: case for name, case in cases if not names or name in names}
        for case in wanted.values():
            self._corpus.add(case)
        seen = _outcomes(self._corpus, tuple(one.id for one in wanted.values()), self._target, self._bad)
        return [OldBug(name, self._regression(case, seen[case.id])) for name, case in wanted.items()]

    def control(self) -> Regression:
        """What a test states that has to pass on both builds."""
        x = np.array([[0.5, -2, 3], [4, 1.5, -6]], np.float32)
        program = {"function": _CONTROL_FUNCTION} if self._target == "inductor" else {"model": _CONTROL_MODEL}
        inputs: Any = {"x": x} if "model" in program else [{"dtype": "float32", "values": x}]
        case = _case({**program, "inputs": inputs})
        self._corpus.add(case)
        outcome = _outcomes(self._corpus, (case.id,), self._target, self._good)[case.id]
        assert outcome.verdict is Verdict.PASS, outcome.summary
        return self._regression(case, outcome)

    def _build(self, which: str, python: Path | None) -> ReadyToolchain:
        release, extra = self._data[which], self._data["extra"][which]
        requirements = (*backends.get(self._target).requirements(release), *extra)
        spec = ToolchainSpec("release", self._target, requirements, f"{self._target} {release}")
        if python is not None:
            return ReadyToolchain(spec, spec.label, str(python.absolute()), {}, ())
        return provision(spec, self._data_dir, lambda _line: None)

    def _regression(self, case: TestCase, outcome: Outcome) -> Regression:
        toolchain = ToolchainView(self._bad.spec.label, self._bad.versions, ())
        if not isinstance(case.program, OnnxModel):
            return Regression(case, outcome, toolchain)
        model = case.program.to_bytes()
        return Regression(case, outcome, toolchain, onnx_outline(model), onnx_code(model))


def read_data() -> dict[str, Any]:
    """The bugs by compiler."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def _case(data: Mapping[str, Any]) -> TestCase:
    """The case of a bug that is written out: an ONNX model, or a function of torch."""
    if "model" in data:
        model = onnx.parser.parse_model(data["model"])
        onnx.checker.check_model(model, full_check=True)
        inputs = {}
        for one in model.graph.input:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type)
            inputs[one.name] = Tensor.of(np.array(data["inputs"][one.name], dtype))
        origin = Provenance("onnx-node-tests", "f", model.graph.node[0].op_type, "onnx", onnx.__version__)
        return TestCase(OnnxModel(model.SerializeToString()), tuple(inputs.items()), origin)
    text = f"import torch\n\n\n{data['function'].strip()}\n"
    given = [Tensor.of(np.array(one["values"], one["dtype"])) for one in data["inputs"]]
    origin = Provenance("torch-api", "f", _operator(text), "torch", "2")
    return TestCase(TorchProgram(text), tuple((str(at), one) for at, one in enumerate(given)), origin)


def _operator(text: str) -> str:
    """The first function of torch that a text calls."""
    return next(word for word in text.replace("(", " ").split() if word.startswith("torch."))


def _with_first_opset(case: TestCase) -> TestCase:
    """The case with the first opset that has all its operators as they are."""
    model = onnx.load_from_string(case.program.to_bytes())
    newest = model.opset_import[0].version
    schemas = (onnx.defs.get_schema(node.op_type, newest, node.domain) for node in model.graph.node)
    opset = max(7, *(one.since_version for one in schemas))  # 7: the first that ONNX Runtime supports
    model.opset_import[0].version = opset
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import)
    onnx.checker.check_model(model, full_check=True)
    return replace(case, program=OnnxModel(model.SerializeToString()))


def _outcomes(
    corpus: Corpus, cases: tuple[str, ...], target: str, build: ReadyToolchain
) -> dict[str, Outcome]:
    """Case → outcome on a build."""
    found: dict[str, Outcome] = {}
    shard = Shard(
        corpus=str(corpus.root),
        cases=cases,
        backend=target,
        toolchain=build.digest,
        python=build.python,
    )

    def take(event: dict[str, Any]) -> None:
        if event["event"] == "outcome":
            outcome = Outcome.from_json(event["outcome"])
            found[outcome.case] = outcome

    LocalRunner(1).run(shard, take, threading.Event())
    return found
