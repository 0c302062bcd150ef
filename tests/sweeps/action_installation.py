"""What `action.yml` installs, from the package index: `pytest tests/sweeps/action_installation.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot.cli.command_helpers import GOOD
from tests.workflows.conftest import Machine

pytestmark = pytest.mark.network


def test_assay_and_the_compiler_are_installed_where_no_interpreter_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.cases(GOOD)
    given = {"backend": "onnxruntime", "python": ""}
    outputs, job = machine.run_action(given | machine.given)
    assert job.succeeded, job.log
    assert outputs["findings"] == "0"
