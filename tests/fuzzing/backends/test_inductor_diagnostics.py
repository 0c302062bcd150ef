"""What Dynamo computes for its logs alone is left out, by names that the installed torch has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from fuzzing.backends.inductor import diagnostics

pytestmark = pytest.mark.compiler_inductor


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Everything silenced for one test; the names that this torch lacks."""
    missing: list[str] = []
    settings: dict[str, Any] = {}

    def replace(path: str, values: dict[str, Any]) -> None:
        owner = diagnostics._find(path)
        for name, value in values.items():
            if hasattr(owner, name) and path == "config":
                settings[name] = value
            elif hasattr(owner, name):
                monkeypatch.setattr(owner, name, value)
            else:
                missing.append(f"{path}.{name}")

    monkeypatch.setattr(diagnostics, "_replace", replace)
    diagnostics.silence_records()
    diagnostics.silence_tracing()
    with torch._dynamo.config.patch(settings):
        yield missing


def test_every_name_is_one_of_the_installed_torch(replaced: list[str]) -> None:
    assert replaced == []


def test_no_stack_is_formatted_and_programs_run_as_before(
    replaced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a graph break, a write to an object that outlives the call, and an exception of the program."""
    del replaced

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("a stack is formatted")

    monkeypatch.setattr("torch._dynamo.exc._extract_stack_with_positions", fail)
    monkeypatch.setattr("torch._dynamo.funcname_cache._add_file", fail)
    kept: list[int] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        kept.append(len(kept))
        y = x + 1
        torch._dynamo.graph_break()
        if y.dim() > 1:
            raise ValueError("two axes")
        return y * len(kept)

    torch._dynamo.reset()
    compiled = torch.compile(forward, backend="eager")
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert compiled(torch.ones(2)).tolist() == [4, 4]
    with pytest.raises(ValueError, match="two axes"):
        compiled(torch.ones(2, 2))
    assert kept == [0, 1, 2]
