"""Runs both sides of an equivalent pair on one backend, in one process, one phase after the other."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from fuzzing.backends.base import Backend, Named, Unsupported
from fuzzing.cases.equivalent_pair import SIDES, BothSidesError, OneSidedError

#: A side's result of its last phase, or the exception that ended it.
_Step = Tuple[Any, Optional[BaseException], str]


class PairRunner:
    """The phases of a backend, each for the left side first.

    A phase raises the error of a side where both have failed and are known to run: the pair then fails as one
    of its programs does alone.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known_to_run = False  # of the pair that was converted last

    def convert(self, pair: Any, inputs: Named) -> List[_Step]:
        """Both sides converted."""
        self._known_to_run = pair.known_to_run
        return self._checked(
            "convert", [_attempt("convert", self._backend.convert, side, inputs) for side in pair.sides]
        )

    def compile(self, steps: List[_Step]) -> List[_Step]:
        """Both sides compiled."""
        return self._checked("compile", [_next("compile", self._backend.compile, step) for step in steps])

    def run(self, steps: List[_Step], inputs: Named) -> Named:
        """The outputs of the left side and then of the right, as `left:NAME` and `right:NAME`.

        Raises OneSidedError, BothSidesError, or the Unsupported of a side.
        """
        ended = self._checked("run", [_next("run", self._backend.run, step, inputs) for step in steps])
        for _, error, _ in ended:
            if isinstance(error, Unsupported):
                raise error
        failures = [
            (name, error, phase) for name, (_, error, phase) in zip(SIDES, ended) if error is not None
        ]
        if failures:
            name, error, phase = failures[0]
            message = f"{type(error).__name__}: {error}"
            if len(failures) == len(SIDES):
                raise BothSidesError(f"both programs fail; the left one in {phase}: {message}")
            wrapped = OneSidedError(f"only the {name} program fails, in {phase}: {message}")
            raise wrapped.with_traceback(error.__traceback__)
        return [
            (f"{name}:{key}", value) for name, (outputs, _, _) in zip(SIDES, ended) for key, value in outputs
        ]

    def _checked(self, phase: str, steps: List[_Step]) -> List[_Step]:
        """The steps. Raises the first error of this phase, rather an Unsupported, if no side goes on."""
        errors = [error for _, error, _ in steps if error is not None]
        if not self._known_to_run or len(errors) < len(SIDES):
            return steps
        for error in errors:
            if isinstance(error, Unsupported):
                raise error
        raise next(error for _, error, failed_in in steps if error is not None and failed_in == phase)


def _attempt(phase: str, call: Callable[..., Any], *given: Any) -> _Step:
    try:
        return call(*given), None, phase
    except Exception as error:  # noqa: BLE001 - any exception of a compiler is evidence
        return None, error, phase


def _next(phase: str, call: Callable[..., Any], step: _Step, *given: Any) -> _Step:
    value, error, _ = step
    return step if error is not None else _attempt(phase, call, value, *given)
