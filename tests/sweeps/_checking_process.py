"""Checks that run in another process, as an illegal model may kill the process that runs it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class CheckingProcess:
    """One process, replaced when it dies."""

    def __init__(self) -> None:
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """What the function returns; None if the process died. Errors of the function are raised."""
        try:
            return self._pool.submit(function, *args, **kwargs).result()
        except BrokenProcessPool:
            self._pool = self._new_pool()
            return None

    def close(self) -> None:
        """Ends the process."""
        self._pool.shutdown()
