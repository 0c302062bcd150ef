"""Forgotten arguments of inductor: which sources of torch's cases notice regressions of its lowerings.

`python -m tests.sweeps.forgotten_lowerings [--source NAME ...] [--plants N] [--seconds N] [--seed S]`

Inductor lowers each operator of a graph by a Python function that takes the arguments of the operator's
schema. A regression is planted by calling one lowering, or one decomposition of inductor's own, always with
the default of one argument, or with 0 or False for an axis or a flag without one. --plants of them are drawn.
A case notices one if its result is right with the installed function, and wrong or an error with the planted
one. Cases are those whose test is named after an operator that was drawn. Prints what
`tests.sweeps.forgotten_arguments` does; a source stops after --seconds of processor time, of which making its
cases takes half at most: then they are its first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzing.backends import get as get_backend
from fuzzing.cases import TestCase, TorchCall, TorchProgram
from fuzzing.execute.compiler_cache import resolve_cache_folder
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.migrate import sources
from fuzzing.migrate.source_parts import migrate_source
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
    time_limit,
)

_SOURCES = ("torch-opinfo", "torch-moduleinfo", "torch-docs", "docter")
#: Seconds of one run of a case.
_LIMIT_S = 60
#: Cases of a source that a regression is tried on: each takes a second of the C++ compiler.
_TRIES = 5
#: Arguments that change no number, or that the library alone obeys.
_INTERNAL = frozenset(
    {
        "allow_tf32", "benchmark", "check_errors", "check_pinning", "cudnn_enabled", "deterministic",
        "device", "generator", "implicit", "layout", "memory_format", "non_blocking", "pin_memory",
        "sparse_grad",
    }
)  # fmt: skip
#: Arguments without a default that a lowering can overlook, and what it then takes.
_OVERLOOKED = {"dim": 0, "dimension": 0, "index": 0, "start": 0}
#: Operators that programs do not call, or not on a CPU.
_NOT_PUBLIC = ("_", "miopen_", "mkldnn_", "sym_")
#: Operators of other names in the tests' names.
_ALIASES = {
    "constant_pad_nd": ("pad",),
    "convolution": ("conv",),
    "grid_sampler_2d": ("grid_sample",),
    "index_put": ("index_put", "getitem"),
    "max_pool2d_with_indices": ("max_pool2d",),
    "max_pool3d_with_indices": ("max_pool3d",),
    "slice": ("narrow", "getitem", "slice"),
    "var_mean": ("var_mean", "std_mean"),
}


@dataclass(frozen=True, order=True)
class Plant:
    """An operator, by name and overload, whose lowering or decomposition ignores an argument."""

    operator: str
    argument: str

    def __str__(self) -> str:
        return f"{self.operator}.{self.argument}"

    @property
    def words(self) -> tuple[str, ...]:
        """What a test's name has if it is about the operator."""
        base = self.operator.split(".")[0].strip("_")
        return _ALIASES.get(base, (base,))


class Lowerings:
    """Inductor's tables of lowerings and decompositions, with one function planted.

    given  the plants whose argument a graph gave something else than what the planted function takes
    """

    def __init__(self) -> None:
        import torch
        from torch._inductor import decomposition, lowering

        self._tables: tuple[dict[Any, Any], ...] = (decomposition.decompositions, lowering.lowerings)
        self._operators: dict[str, Any] = {}
        self._forgotten: dict[Plant, Any] = {}
        self.given: set[Plant] = set()
        operator: Any
        for operator in {**lowering.lowerings, **decomposition.decompositions}:
            own = decomposition.decompositions.get(operator)
            python = own.__module__ == decomposition.__name__ if own else operator not in lowering.fallbacks
            if isinstance(operator, torch._ops.OpOverload) and python and _is_lowered(operator):
                self._add(operator)

    def _add(self, operator: Any) -> None:
        name = str(operator).removeprefix("aten.")
        for argument in operator._schema.arguments:
            if argument.is_out or argument.name in _INTERNAL:
                continue
            if argument.has_default_value():
                self._forgotten[Plant(name, argument.name)] = argument.default_value
            elif str(argument.type) == "bool":
                self._forgotten[Plant(name, argument.name)] = False
            elif str(argument.type) == "int" and argument.name in _OVERLOOKED:
                self._forgotten[Plant(name, argument.name)] = _OVERLOOKED[argument.name]
            else:
                continue
            self._operators[name] = operator

    def plants(self) -> list[Plant]:
        """Every argument that can be forgotten, sorted."""
        return sorted(self._forgotten)

    def note(self, operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Adds to `given` what a call gives."""
        name = str(operator).removeprefix("aten.")
        if operator is not self._operators.get(name, self):
            return
        for place, argument in enumerate(operator._schema.arguments):
            plant = Plant(name, argument.name)
            if plant not in self._forgotten:
                continue
            there = place < len(args) and not argument.kwarg_only
            if not there and argument.name not in kwargs:
                continue
            value = args[place] if there else kwargs[argument.name]
            if not same(value, self._forgotten[plant]):
                self.given.add(plant)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Within, `given` gets what decompositions are given; a graph tells what lowerings are."""
        self.given.clear()
        table = self._tables[0]
        before = {one: table[one] for one in self._operators.values() if one in table}
        for operator, function in before.items():
            table[operator] = self._watch(operator, function)
        try:
            yield
        finally:
            table.update(before)

    def _watch(self, operator: Any, function: Any) -> Any:
        def watching(*args: Any, **kwargs: Any) -> Any:
            self.note(operator, args, kwargs)
            return function(*args, **kwargs)

        return watching

    @contextlib.contextmanager
    def planted(self, plant: Plant) -> Iterator[None]:
        """Within, one function ignores its argument."""
        operator, value = self._operators[plant.operator], self._forgotten[plant]
        before = [(table, table[operator]) for table in self._tables if operator in table]
        for table, function in before:
            table[operator] = _forget(operator, function, plant.argument, value)
        try:
            yield
        finally:
            for table, function in before:
                table[operator] = function


def _is_lowered(operator: Any) -> bool:
    """Whether a graph of a program on a CPU can have this operator: public, no gradient, and not composed."""
    import torch

    if operator.namespace != "aten" or "backward" in str(operator) or operator._schema.is_mutable:
        return False
    if operator._schema.name.removeprefix("aten::").startswith(_NOT_PUBLIC):
        return False
    try:
        composed = torch._C._dispatch_has_kernel_for_dispatch_key(
            operator.name(), "CompositeImplicitAutograd"
        )
    except RuntimeError:  # registered in Python alone
        return False
    return not composed


def _forget(operator: Any, function: Any, argument: str, value: Any) -> Any:
    places = [
        place
        for place, one in enumerate(operator._schema.arguments)
        if one.name == argument and not one.kwarg_only
    ]

    def forgetful(*args: Any, **kwargs: Any) -> Any:
        args = tuple(value if place in places else given for place, given in enumerate(args))
        if argument in kwargs:
            kwargs[argument] = value
        return function(*args, **kwargs)

    return forgetful


class Runner:
    """Runs cases on the installed inductor in this process; only `wanted` plants are tried."""

    def __init__(self, wanted: Sequence[Plant]) -> None:
        backend, library = get_backend("inductor"), get_backend("torch_eager")
        os.environ["ASSAY_CACHE"] = resolve_cache_folder(WorkerCommand(sys.executable, "inductor"))
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        self._backend, self._library = backend(), library()
        self._library.load("CPU", library.resolve_options({}))
        self._backend.load("CPU", {})
        self.lowerings = Lowerings()
        self._wanted = set(wanted)
        self._tries: Counter[Plant] = Counter()

    def expected(self, case: TestCase) -> list[Any] | None:
        """The library's outputs; None if it has none."""
        try:
            inputs: Any = list(case.inputs)
            model = self._library.convert(case.program, inputs)
            found = self._library.run(self._library.compile(model), inputs)
        except Exception:  # noqa: BLE001 - no reference, no comparison
            return None
        return [value for _, value in found]

    def is_right(self, case: TestCase, expected: Sequence[Any]) -> bool:
        """Whether the outputs are the expected ones; an error is not right."""
        return is_right(self._backend, case, expected, _LIMIT_S)

    def reached(self, case: TestCase, expected: Sequence[Any]) -> tuple[bool, set[Plant]]:
        """Whether it is right, run only if it gives something that is to be tried; and what it gives."""
        given = {plant for plant in self._given(case) & self._wanted if self._tries[plant] < _TRIES}
        self._tries.update(given)
        right = not given or self.is_right(case, expected)
        return right, given if right else set()

    def planted(self, plant: Plant) -> contextlib.AbstractContextManager[None]:
        """Within, one function ignores its argument."""
        return self.lowerings.planted(plant)

    def _given(self, case: TestCase) -> set[Plant]:
        """What the graphs of a case give, before inductor compiles them: a tenth of the time."""
        import torch
        from torch._dynamo.backends.common import aot_autograd
        from torch._inductor.decomposition import select_decomp_table

        def compile_graph(graph: Any, _: Any) -> Any:
            for node in graph.graph.nodes:
                if node.op == "call_function":
                    self.lowerings.note(node.target, node.args, node.kwargs)
            return graph

        with self.lowerings.watched(), contextlib.suppress(Exception), time_limit(_LIMIT_S):
            inputs: Any = list(case.inputs)
            built, _ = self._backend.convert(case.program, inputs)
            backend = aot_autograd(fw_compiler=compile_graph, decompositions=select_decomp_table())
            built.module = torch.compile(built.module, backend=backend, dynamic=False)
            built.run(inputs, "cpu")
        return set(self.lowerings.given)


@dataclass(frozen=True)
class _About:
    """The tests in whose names an operator is a word, as a part of a source."""

    operators: frozenset[str]

    def contains(self, name: str) -> bool:
        words = (word.replace("_", "") for word in name.lower().split("."))
        return any(re.sub(r"\dd$", "", word) in self.operators or word in self.operators for word in words)


def _cases(source: str, plants: Sequence[Plant], most: int, seed: int, seconds: float) -> list[TestCase]:
    operators = frozenset(word.replace("_", "") for plant in plants for word in plant.words)
    part: Any = _About(operators)
    options = {"seed": seed} if source == "docter" else {}
    items = migrate_within(seconds, migrate_source(sources.get(source), part, options))
    kinds = (TorchCall, TorchProgram)
    found = [one for one in items if isinstance(one, TestCase) and isinstance(one.program, kinds)]
    return random.Random(seed).sample(found, min(most, len(found)))


def main(arguments: Sequence[str]) -> int:
    """Prints what each source notices; 1 if none reaches an argument."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--source", action="append", default=[], help=f"[default: {', '.join(_SOURCES)}]")
    parser.add_argument("--plants", type=int, default=40, help="regressions to draw")
    parser.add_argument("--seconds", type=float, default=120, help="processor time of each source")
    parser.add_argument("--most", type=int, default=2000, help="cases of each source")
    parser.add_argument("--seed", type=int, default=0, help="of the regressions and of generated sources")
    given = parser.parse_args(arguments)
    every = Lowerings().plants()
    plants = sorted(random.Random(given.seed).sample(every, min(given.plants, len(every))))
    print(f"{len(plants)} of {len(every)} arguments: {', '.join(map(str, plants))}", flush=True)
    found: dict[str, Noticed[Plant]] = {}
    for source in given.source or _SOURCES:
        begin = processor_time()
        cases = _cases(source, plants, given.most, given.seed, MIGRATION_SHARE * given.seconds)
        found[source] = search(lambda: Runner(plants), cases, given.seconds - (processor_time() - begin))
        print_source(source, found[source])
    return print_result(found, set(plants))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
