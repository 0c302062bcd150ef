"""Forgotten arguments: which sources of cases notice regressions of tinygrad's ONNX functions.

`python -m tests.sweeps.forgotten_arguments [--source NAME ...] [--seconds N] [--count N]`

tinygrad implements each ONNX operator as a Python function whose parameters are attributes and inputs. A
regression is planted by calling one function always with the default of one parameter. A case notices it if
its result is right with the installed function, and wrong or an error with the planted one. Prints for each
source how many of the regressions that any source reached it notices, then those that none does, then the
parameters that no case gives anything but the default. No regression is tried again by a source that noticed
it; a source stops after --seconds of processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from fuzzing.backends import get as get_backend
from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import OnnxModel, Tensor, TestCase
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.migrate import sources
from fuzzing.migrate.source_parts import migrate_source

#: Default sources of ONNX cases, cheapest first, and the generator.
_SOURCES = (
    "onnx-node-tests",
    "onnx-constant-inputs",
    "onnx-attributes",
    "onnx-earlier-opsets",
    "onnx-mutants",
    "isra",
)
_GENERATED = ("isra", "onnx-mutants")
_TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
#: Seconds of one run of a case; a planted function may not end.
_LIMIT_S = 10
#: Regressions that one case is tried on: of a large model not every parameter.
_MOST = 12
#: Parameters that the runner fills in by itself.
_INTERNAL = frozenset({"intermediate_tensors"})

Function = Callable[..., Any]


@dataclass(frozen=True, order=True)
class Plant:
    """A function, by operator, domain and first opset ("" for all), that ignores a parameter."""

    operator: str
    opset: str
    parameter: str

    def __str__(self) -> str:
        return f"{self.operator}{f'-{self.opset}' if self.opset else ''}.{self.parameter}"


@dataclass
class Functions:
    """tinygrad's table of functions, with one planted or all watched.

    given  the plants whose parameter a run gave something else than its default
    """

    table: dict[str, Any]
    given: set[Plant] = field(default_factory=set)

    def plants(self) -> Iterator[Plant]:
        """Every parameter with a default."""
        for operator, opset, function in self._functions():
            for name in _defaults(function):
                yield Plant(operator, opset, name)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Within, runs note in `given` what they give."""
        self.given.clear()
        with self._replaced(lambda operator, opset, function: self._watch(operator, opset, function)):
            yield

    @contextlib.contextmanager
    def planted(self, plant: Plant) -> Iterator[None]:
        """Within, one function ignores its parameter."""

        def replace(operator: str, opset: str, function: Function) -> Function:
            own = (operator, opset) == (plant.operator, plant.opset)
            return _forget(function, plant.parameter) if own else function

        with self._replaced(replace):
            yield

    def _functions(self) -> Iterator[tuple[str, str, Function]]:
        for operator, found in self.table.items():
            if isinstance(found, dict):
                yield from ((operator, _opset(one), function) for one, function in found.items())
            else:
                yield operator, "", found

    @contextlib.contextmanager
    def _replaced(self, replace: Callable[[str, str, Function], Function]) -> Iterator[None]:
        before = dict(self.table)
        for operator, found in before.items():
            if isinstance(found, dict):
                self.table[operator] = {
                    one: replace(operator, _opset(one), function) for one, function in found.items()
                }
            else:
                self.table[operator] = replace(operator, "", found)
        try:
            yield
        finally:
            self.table.clear()
            self.table.update(before)

    def _watch(self, operator: str, opset: str, function: Function) -> Function:
        defaults = _defaults(function)
        if not defaults:
            return function
        signature = inspect.signature(function)

        def watching(*args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(TypeError):
                for name, value in signature.bind(*args, **kwargs).arguments.items():
                    if name in defaults and not _same(value, defaults[name]):
                        self.given.add(Plant(operator, opset, name))
            return function(*args, **kwargs)

        return watching


def _opset(one: Any) -> str:
    return f"{one.domain.name.lower()}-{one.version}"


def _defaults(function: Function) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    return {
        name: one.default
        for name, one in parameters.items()
        if one.default is not inspect.Parameter.empty and name not in _INTERNAL
    }


def _forget(function: Function, parameter: str) -> Function:
    signature = inspect.signature(function)
    default = signature.parameters[parameter].default

    def forgetful(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        if parameter in bound.arguments:
            bound.arguments[parameter] = default
        return function(*bound.args, **bound.kwargs)

    return forgetful


def _same(value: Any, default: Any) -> bool:
    if value is None or default is None:
        return value is default
    try:
        return bool(value == default)
    except (TypeError, ValueError, RuntimeError):
        return False


class Runner:
    """Runs cases on the installed tinygrad in this process."""

    def __init__(self) -> None:
        self._backend = get_backend("tinygrad")()
        self._backend.load("CPU", {})
        from tinygrad.nn import onnx

        self.functions = Functions(onnx.onnx_ops)

    def is_right(self, case: TestCase, expected: Sequence[Any]) -> bool:
        """Whether the outputs are the expected ones; an error is not right."""
        try:
            with _time_limit():
                inputs: Any = list(case.inputs)
                model = self._backend.convert(case.program, inputs)
                found = self._backend.run(self._backend.compile(model), inputs)
        except Exception:  # noqa: BLE001 - whatever tinygrad raises
            return False
        values = [value for _, value in found]
        return len(values) == len(expected) and all(map(_equal, values, expected))


def _equal(one: Any, want: Any) -> bool:
    if not isinstance(want, Tensor) or not isinstance(one, Tensor):
        return want is None
    if (one.dtype, one.shape) != (want.dtype, want.shape):
        return False
    if want.dtype in RAW_DTYPES:
        return one.data == want.data
    return bool(np.allclose(one.array(), want.array(), equal_nan=True, **_TOLERANCE))


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Expected:
    """The outputs that a case must have."""

    def __init__(self) -> None:
        self._reference = OnnxReference()
        self._reference.load("CPU", {})

    def of(self, case: TestCase) -> list[Any] | None:
        """The case's own, or those of ONNX's evaluator; None without either."""
        if case.expected is not None:
            return [value for _, value in case.expected]
        try:
            model = self._reference.convert(case.program, list(case.inputs))  # type: ignore[arg-type]
            found = self._reference.run(self._reference.compile(model), list(case.inputs))  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - no reference, no comparison
            return None
        return [value for _, value in found]


@dataclass
class Noticed:
    """What the cases of one source reach and notice."""

    reached: set[Plant] = field(default_factory=set)
    noticed: dict[Plant, str] = field(default_factory=dict)
    cases: int = 0
    right: int = 0

    def add(self, right: bool | None, reached: set[Plant], noticed: dict[Plant, str], spent: float) -> float:
        """Adds what one case did, None without a reference; returns the process' seconds so far."""
        self.cases += right is not None
        self.right += bool(right)
        self.reached |= reached
        self.noticed |= noticed
        return spent


def search(source: str, seconds: float, options: Mapping[str, int]) -> Noticed:
    """Runs a source's cases in a random order of a fixed seed, in processes of which one may die."""
    os.environ.setdefault("DEV", "CPU")
    given = dict(options) if source in _GENERATED else {}
    items = migrate_source(sources.get(source), None, given)
    cases = [one for one in items if isinstance(one, TestCase) and isinstance(one.program, OnnxModel)]
    random.Random(0).shuffle(cases)
    runner, expected, found, place = Runner(), Expected(), Noticed(), 0
    context, spent = multiprocessing.get_context("fork"), 0.0
    while place < len(cases) and spent < seconds:
        spent_here = 0.0
        mine, theirs = context.Pipe(duplex=False)
        work = (theirs, runner, expected, cases[place:], set(found.noticed), seconds - spent)
        process = context.Process(target=_send_results, args=work)
        process.start()
        theirs.close()
        with contextlib.suppress(EOFError):
            while (result := mine.recv()) is not None:
                spent_here = found.add(*result)
                place += 1
            place = len(cases)
        process.join()
        spent += spent_here
        place += 1  # the case of which it died
    return found


def _send_results(
    pipe: Connection,
    runner: Runner,
    expected: Expected,
    cases: Sequence[TestCase],
    noticed: set[Plant],
    seconds: float,
) -> None:
    """Sends for each case what `Noticed.add` takes, then None."""
    begin = time.process_time()
    for case in cases:
        right: bool | None = None
        reached: set[Plant] = set()
        fresh: dict[Plant, str] = {}
        wanted = None if case.comparison == "shapes" else expected.of(case)
        if wanted is not None:
            with runner.functions.watched():
                right = runner.is_right(case, wanted)
                reached = set(runner.functions.given) if right else set()
            for plant in sorted(reached - noticed)[:_MOST]:
                with runner.functions.planted(plant):
                    if not runner.is_right(case, wanted):
                        fresh[plant] = case.provenance.test
            noticed |= fresh.keys()
        spent = time.process_time() - begin
        pipe.send((right, reached, fresh, spent))
        if spent > seconds:
            break
    pipe.send(None)


def main(arguments: Sequence[str]) -> int:
    """Prints what each source notices; 1 if none reaches a parameter."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", action="append", default=[], help=f"[default: {', '.join(_SOURCES)}]")
    parser.add_argument("--seconds", type=float, default=120, help="processor time of each source")
    parser.add_argument("--seed", type=int, default=0, help="of generated sources")
    parser.add_argument("--count", type=int, default=300, help="models of isra; mutants of a test: count/100")
    given = parser.parse_args(arguments)
    found: dict[str, Noticed] = {}
    for source in given.source or _SOURCES:
        count = given.count if source == "isra" else max(given.count // 100, 1)
        found[source] = one = search(source, given.seconds, {"seed": given.seed, "count": count})
        print(
            f"{source}: {one.right} of {one.cases} cases are right, reach {len(one.reached)} parameters, "
            f"notice {len(one.noticed)}",
            flush=True,
        )
    reached = set().union(*(one.reached for one in found.values()))
    noticed = set().union(*(one.noticed for one in found.values()))
    every = set(Functions(_table()).plants())
    print(
        f"{len(reached)} of {len(every)} parameters are given something; {len(noticed)} regressions noticed"
    )
    for name, one in found.items():
        others = set().union(*(other.noticed for kind, other in found.items() if kind != name))
        print(f"  only by {name}: {', '.join(map(str, sorted(one.noticed.keys() - others))) or 'none'}")
    print(f"  by none: {', '.join(map(str, sorted(reached - noticed))) or 'none'}")
    print(f"  never given: {', '.join(map(str, sorted(every - reached))) or 'none'}")
    return 0 if reached else 1


def _table() -> dict[str, Any]:
    from tinygrad.nn import onnx

    table: dict[str, Any] = onnx.onnx_ops
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
