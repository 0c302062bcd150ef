"""The smoke test of a compiler: one plain model of each kind of program, compiled, run and compared.

`python -m fuzzing.smoke_test --backend NAME --python PATH [--kind KIND…]` prints a JSON object on a line for
each model: {"test", "kind", "verdict", "phase", "message"}, and then {"sources": [path]}, the Python files
that they import. A compiler that fails here fails on everything: its other failures are no evidence about a
change. Errors as in `fuzzing.entry_point`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fuzzing.cases import (
    Corpus,
    Input,
    KerasLayer,
    OnnxModel,
    Program,
    Provenance,
    Recipe,
    TestCase,
    TorchProgram,
)
from fuzzing.cases.arguments import TensorArg
from fuzzing.entry_point import emit_event_now, run_main
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun
from fuzzing.outcomes import Outcome, Verdict

_SHAPE = (2, 3)
_TORCH = "import torch\n\n\ndef forward(x):\n    return torch.relu(x + 1.0)\n"


def _onnx_model() -> Program:
    """relu(x + 1): operators that every ONNX frontend has, at an opset that every release knows."""
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, _SHAPE) for name in "xy")
    one = helper.make_tensor("one", TensorProto.FLOAT, (), [1.0])
    nodes = [helper.make_node("Add", ["x", "one"], ["sum"]), helper.make_node("Relu", ["sum"], ["y"])]
    graph = helper.make_graph(nodes, "smoke", [x], [y], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    return OnnxModel(model.SerializeToString(deterministic=True))


#: Program kind → the model of the test. Other kinds are not tested here.
MODELS: dict[str, Callable[[], Program]] = {
    "OnnxModel": _onnx_model,
    "TorchProgram": lambda: TorchProgram(_TORCH),
    "KerasLayer": lambda: KerasLayer(
        "keras.activations.relu", (), (TensorArg("x", dtype="float32", shape=_SHAPE),)
    ),
}
_WHAT = {"KerasLayer": "relu(x)"}  # of the others relu(x + 1)


def smoke_case(kind: str) -> TestCase:
    """The case of a program kind."""
    inputs: tuple[tuple[str, Input], ...] = (
        ("x", Recipe("uniform", "float32", _SHAPE, low=-2, high=2, seed=0)),
    )
    program = MODELS[kind]()
    library, what = program.frontend, _WHAT.get(kind, "relu(x + 1)")
    return TestCase(program, inputs, Provenance("smoke", f"{library} {what}", "", library, ""))


class SmokeTest(NamedTuple):
    """Results: program kind → outcome; the Python files that the compiler's process has imported."""

    outcomes: dict[str, Outcome]
    sources: frozenset[str] = frozenset()


def run_smoke_test(backend: str, python: str, kinds: Sequence[str]) -> SmokeTest:
    """The results for the kinds that have a model, in the order given."""
    with tempfile.TemporaryDirectory(prefix="assay-smoke-") as folder:
        corpus = Corpus(Path(folder))
        cases = {kind: smoke_case(kind) for kind in kinds if kind in MODELS}
        for case in cases.values():
            corpus.add(case)
        ids = tuple(case.id for case in cases.values())
        if not ids:
            return SmokeTest({})
        run = ShardRun(Shard(folder, ids, backend, "", python), note_sources=True)
        found = {outcome.case: outcome for _, outcome in run.outcomes()}
        return SmokeTest({kind: found[case.id] for kind, case in cases.items()}, frozenset(run.sources))


def main(arguments: Sequence[str]) -> int:
    """The command line of the module."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.smoke_test", description=__doc__)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--kind", action="append", default=[])
    options = parser.parse_args(arguments)

    def work() -> None:
        ran = run_smoke_test(options.backend, options.python, options.kind)
        for kind, outcome in ran.outcomes.items():
            emit_event_now(
                test=smoke_case(kind).provenance.test,
                kind=kind,
                verdict=outcome.verdict.value,
                phase=outcome.phase.value,
                message=_message(outcome),
            )
        emit_event_now(sources=sorted(ran.sources))

    return run_main("python -m fuzzing.smoke_test", work)


def _message(outcome: Outcome) -> str:
    if outcome.verdict is Verdict.PASS:
        return ""
    evidence = outcome.evidence
    return "\n".join(filter(None, (outcome.summary, *evidence.traceback, evidence.message, evidence.native)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
