"""Forgotten arguments: which sources of cases notice regressions of tinygrad's ONNX functions.

`python -m tests.sweeps.forgotten_arguments [--source NAME ...] [--seconds N] [--count N]`

tinygrad implements each ONNX operator as a Python function whose parameters are attributes and inputs. A
regression is planted by calling one function always with the default of one parameter. A case notices it if
its result is right with the installed function, and wrong or an error with the planted one. Prints for each
source how many of the regressions that any source reached it notices, then those that none does, then the
parameters that no case gives anything but the default. No regression is tried again by a source that noticed
it; a source stops after --seconds of processor time, of which making its cases takes half at most. Those of
`onnx-mutants` are then of random tests, those of others the first.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzing.backends import get as get_backend
from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import OnnxModel, TestCase
from fuzzing.migrate import sources
from fuzzing.migrate.source_parts import Part, migrate_source
from fuzzing.migrate.sources import Skip
from tests.sweeps._planted import (
    MIGRATION_SHARE,
    Noticed,
    is_right,
    migrate_within,
    print_result,
    print_source,
    processor_time,
    same,
    search,
)

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
#: Parts of a source, each some tests of all kinds.
_PARTS = 64
#: Seconds of one run of a case; a planted function may not end.
_LIMIT_S = 10
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
                    if name in defaults and not same(value, defaults[name]):
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


class Runner:
    """Runs cases on the installed tinygrad in this process."""

    def __init__(self) -> None:
        self._backend = get_backend("tinygrad")()
        self._backend.load("CPU", {})
        from tinygrad.nn import onnx

        self.functions = Functions(onnx.onnx_ops)
        self._reference = OnnxReference()
        self._reference.load("CPU", {})

    def is_right(self, case: TestCase, expected: Sequence[Any]) -> bool:
        """Whether the outputs are the expected ones; an error is not right."""
        return is_right(self._backend, case, expected, _LIMIT_S)

    def expected(self, case: TestCase) -> list[Any] | None:
        """The case's own, or those of ONNX's evaluator; None without either."""
        if case.expected is not None:
            return [value for _, value in case.expected]
        try:
            model = self._reference.convert(case.program, list(case.inputs))  # type: ignore[arg-type]
            found = self._reference.run(self._reference.compile(model), list(case.inputs))  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - no reference, no comparison
            return None
        return [value for _, value in found]

    def reached(self, case: TestCase, expected: Sequence[Any]) -> tuple[bool, set[Plant]]:
        """Whether it is right, and what it then gives that is no default."""
        with self.functions.watched():
            right = self.is_right(case, expected)
            return right, set(self.functions.given) if right else set()

    def planted(self, plant: Plant) -> contextlib.AbstractContextManager[None]:
        """Within, one function ignores its parameter."""
        return self.functions.planted(plant)


def _cases(source: str, options: Mapping[str, int], seconds: float) -> list[TestCase]:
    items = migrate_within(seconds, _items(source, dict(options) if source in _GENERATED else {}))
    return [one for one in items if isinstance(one, TestCase) and isinstance(one.program, OnnxModel)]


def _items(source: str, options: Mapping[str, int]) -> Iterator[TestCase | Skip]:
    """The items of a source; of one that is made in parts, the parts in a random order of a fixed seed."""
    found = sources.get(source)
    parts: list[Part | None] = [None]
    if "part" in inspect.signature(found.migrate).parameters:
        parts = [Part(number, _PARTS) for number in range(1, _PARTS + 1)]
        random.Random(0).shuffle(parts)
    for part in parts:
        yield from migrate_source(found, part, options)


def main(arguments: Sequence[str]) -> int:
    """Prints what each source notices; 1 if none reaches a parameter."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", action="append", default=[], help=f"[default: {', '.join(_SOURCES)}]")
    parser.add_argument("--seconds", type=float, default=120, help="processor time of each source")
    parser.add_argument("--seed", type=int, default=0, help="of generated sources")
    parser.add_argument("--count", type=int, default=300, help="models of isra; mutants of a test: count/100")
    given = parser.parse_args(arguments)
    os.environ.setdefault("DEV", "CPU")
    found: dict[str, Noticed[Plant]] = {}
    for source in given.source or _SOURCES:
        count = given.count if source == "isra" else max(given.count // 100, 1)
        begin = processor_time()
        cases = _cases(source, {"seed": given.seed, "count": count}, MIGRATION_SHARE * given.seconds)
        found[source] = search(Runner, cases, given.seconds - (processor_time() - begin))
        print_source(source, found[source])
    return print_result(found, set(Functions(_table()).plants()))


def _table() -> dict[str, Any]:
    from tinygrad.nn import onnx

    table: dict[str, Any] = onnx.onnx_ops
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
