"""Runs Python source in real workers: what a case of the worst kind could do."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution

BACKEND = str(Path(__file__).parent / "probing_backend.py")
#: Run in the worker with a name `given`; what it returns is answered as text.
Probe = Callable[[dict[str, Any]], object]


def command(**given: Any) -> WorkerCommand:
    return WorkerCommand(sys.executable, BACKEND, **given)


def source(probe: Probe) -> str:
    """The probe's own text: it must import what it needs inside."""
    text = textwrap.dedent(inspect.getsource(probe))
    return f"from __future__ import annotations\n{text}\nresult = {probe.__name__}(given)\n"


def answers(supervisor: Supervisor[str], probes: Mapping[str, str]) -> dict[str, str]:
    """What each program answers, by its name; the exception if it raised one."""
    return {name: answer(execution) for name, execution in supervisor.run(cases(probes))}


def cases(probes: Mapping[str, str]) -> Iterator[tuple[str, TestCase]]:
    """The programs as cases, by their names."""
    for name, text in probes.items():
        yield name, TestCase(OnnxModel(text.encode()), (), Provenance("tests", name, "", "", ""))


def answer(execution: Execution) -> str:
    if execution.ending != "returned":
        return f"{execution.error or execution.signal or execution.ending}: {execution.message}"
    [(_, value)] = execution.outputs
    assert isinstance(value, Tensor)
    return str(value.array())
