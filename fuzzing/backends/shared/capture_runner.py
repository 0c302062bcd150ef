"""Runs on its library what the library makes of a program for a compiler, as a case of that compiler."""

from __future__ import annotations

from typing import Any

from fuzzing.backends.base import Backend, Named


class CaptureRunner:
    """The phases of a backend without its compiler, see `Backend.run_capture`: all of it happens in `run`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def convert(self, program: Any, inputs: Named) -> Any:  # noqa: ARG002
        """The program."""
        return program

    def compile(self, model: Any) -> Any:
        """Nothing to do."""
        return model

    def run(self, executable: Any, inputs: Named) -> Named:
        """The outputs of the library, or a model."""
        return self._backend.run_capture(executable, inputs)
