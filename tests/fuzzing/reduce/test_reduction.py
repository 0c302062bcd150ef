"""What a reduction as a whole costs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fuzzing.execute import supervisor
from fuzzing.execute.worker_process import WorkerProcess
from fuzzing.reduce.reduction import reduce_case
from tests.fuzzing.execute.test_evaluator import case, shard

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
