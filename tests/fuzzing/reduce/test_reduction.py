"""What a reduction as a whole costs, and which of its candidates it ends in."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fuzzing.cases import Tensor
from fuzzing.execute import supervisor
from fuzzing.execute.shard import Shard
from fuzzing.execute.worker_process import WorkerProcess
from fuzzing.reduce.reduction import reduce_case
from tests.fuzzing.backends.backend_kit import onnx_case
from tests.fuzzing.execute.test_evaluator import case, shard
from tests.fuzzing.reduce.remembering_backend import FEW

pytestmark = pytest.mark.compiler_onnxruntime


def test_the_library_is_imported_once_for_each_of_the_ways_it_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time of a small reduction goes into imports, where there is much else to do."""
    started: Counter[tuple[str, str]] = Counter()

    class Counted(WorkerProcess):
        def __init__(self, command: Any, *rest: Any) -> None:
            started[Path(command.backend).stem, repr(command)] += 1
            super().__init__(command, *rest)

    monkeypatch.setattr(supervisor, "WorkerProcess", Counted)
    found = reduce_case(case("Sigmoid"), shard("wrong-sigmoid"))
    assert found.confirmed
    library = [count for (name, _), count in started.items() if name == "onnx_reference"]
    assert library == [1, 1, 1, 1]


def test_a_candidate_that_passes_in_a_fresh_process_gives_way_to_a_larger_one() -> None:
    """What an earlier case left in the memory of the process decides how far the search goes."""
    path = Path(__file__).parent / "remembering_backend.py"
    begin = onnx_case(
        "(float[2,8] x) => (float[2,8] y)",
        "a = Abs(x)  b = Neg(a)  y = Exp(b)",
        x=Tensor.of(np.arange(16, dtype=np.float32).reshape(2, 8) / 8),
    )
    found = reduce_case(begin, Shard("", (), str(path), "digest", sys.executable, options={"fault": "neg"}))
    assert found.confirmed
    assert not found.reduced.minimal
    [(_, given)] = found.case.inputs
    assert isinstance(given, Tensor)
    assert given.array().size >= FEW
    model = onnx.load_model_from_string(found.case.program.to_bytes())
    assert [node.op_type for node in model.graph.node] == ["Neg"]
