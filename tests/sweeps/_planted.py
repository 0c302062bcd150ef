"""What sweeps of planted regressions share: which cases of a source reach and notice one."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from os import times
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from fuzzing.backends import Backend
from fuzzing.cases import Tensor, TestCase
from fuzzing.cases.values import RAW_DTYPES

_TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
#: Regressions that one case is tried on: of a large model not every parameter.
_MOST = 12

#: Share of a source's time in which its cases are made; the rest of it they run.
MIGRATION_SHARE = 0.5

Item = TypeVar("Item")
Plant = TypeVar("Plant", bound="Ordered")


class Ordered(Protocol):
    """What can be sorted and is a key."""

    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


class Target(Protocol[Plant]):
    """A compiler in this process, in which regressions can be planted."""

    def expected(self, case: TestCase) -> list[Any] | None:
        """The outputs that the case must have; None if they are not known."""

    def is_right(self, case: TestCase, expected: Sequence[Any]) -> bool:
        """Whether the outputs are the expected ones; an error is not right."""

    def reached(self, case: TestCase, expected: Sequence[Any]) -> tuple[bool, set[Plant]]:
        """Whether the case is right, and the plants that it gives something else than what they always take.

        The answer may be True without a run if there are no such plants.
        """

    def planted(self, plant: Plant) -> AbstractContextManager[None]:
        """Within, the regression is there."""


@dataclass
class Noticed(Generic[Plant]):
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


def migrate_within(seconds: float, items: Iterable[Item]) -> Iterator[Item]:
    """The items that come within so many seconds of processor time."""
    begin = processor_time()
    for item in items:
        yield item
        if processor_time() - begin > seconds:
            return


def search(
    make_target: Callable[[], Target[Plant]], cases: Sequence[TestCase], seconds: float
) -> Noticed[Plant]:
    """Runs cases in a random order of a fixed seed, in processes of which one may die.

    seconds  of processor time, those of processes that the target starts included
    """
    shuffled = [replace(case, inputs=tuple(case.values())) for case in cases]  # drawn, where they are recipes
    random.Random(0).shuffle(shuffled)
    target, found, place = make_target(), Noticed[Plant](), 0
    context, spent = multiprocessing.get_context("fork"), 0.0
    while place < len(shuffled) and spent < seconds:
        spent_here = 0.0
        mine, theirs = context.Pipe(duplex=False)
        work = (theirs, target, shuffled[place:], set(found.noticed), seconds - spent)
        process = context.Process(target=_send_results, args=work)
        process.start()
        theirs.close()
        with contextlib.suppress(EOFError):
            while (result := mine.recv()) is not None:
                spent_here = found.add(*result)
                place += 1
            place = len(shuffled)
        process.join()
        spent += spent_here
        place += 1  # the case of which it died
    return found


def _send_results(
    pipe: Connection, target: Target[Plant], cases: Sequence[TestCase], noticed: set[Plant], seconds: float
) -> None:
    """Sends for each case what `Noticed.add` takes, then None."""
    begin = processor_time()
    for case in cases:
        right: bool | None = None
        reached: set[Plant] = set()
        fresh: dict[Plant, str] = {}
        wanted = None if case.comparison == "shapes" else target.expected(case)
        if wanted is not None:
            right, reached = target.reached(case, wanted)
            for plant in sorted(reached - noticed)[:_MOST]:
                with target.planted(plant):
                    if not target.is_right(case, wanted):
                        fresh[plant] = case.provenance.test
            noticed |= fresh.keys()
        spent = processor_time() - begin
        pipe.send((right, reached, fresh, spent))
        if spent > seconds:
            break
    pipe.send(None)


def processor_time() -> float:
    """Seconds of processor time of this process and of the children that it has waited for."""
    spent = times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def equal(one: Any, want: Any) -> bool:
    """Whether an output is the expected one, to rounding; None where there is none."""
    if not isinstance(want, Tensor) or not isinstance(one, Tensor):
        return want is None
    if (one.dtype, one.shape) != (want.dtype, want.shape):
        return False
    if want.dtype in RAW_DTYPES:
        return one.data == want.data
    return bool(np.allclose(one.array(), want.array(), equal_nan=True, **_TOLERANCE))


def is_right(backend: Backend, case: TestCase, expected: Sequence[Any], limit_s: int) -> bool:
    """Whether a compiler gives the expected outputs within the limit; an error is not right."""
    try:
        with time_limit(limit_s):
            inputs: Any = list(case.inputs)
            model = backend.convert(case.program, inputs)
            found = backend.run(backend.compile(model), inputs)
    except Exception:  # noqa: BLE001 - whatever the compiler raises
        return False
    values = [value for _, value in found]
    return len(values) == len(expected) and all(map(equal, values, expected))


def same(value: Any, default: Any) -> bool:
    """Whether a parameter is given its default."""
    if value is None or default is None:
        return value is default
    try:
        return bool(value == default)
    except (TypeError, ValueError, RuntimeError):
        return False


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Within, raises TimeoutError after so many seconds: a planted function may not end."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def print_result(found: Mapping[str, Noticed[Plant]], every: set[Plant]) -> int:
    """Prints what each source noticed and none did; 1 if nothing was reached."""
    reached = set[Plant]().union(*(one.reached for one in found.values()))
    noticed = set[Plant]().union(*(one.noticed for one in found.values()))
    print(
        f"{len(reached)} of {len(every)} parameters are given something; {len(noticed)} regressions noticed"
    )
    for name, one in found.items():
        others = set[Plant]().union(*(other.noticed for kind, other in found.items() if kind != name))
        print(f"  only by {name}: {_listed(one.noticed.keys() - others)}")
    print(f"  by none: {_listed(reached - noticed)}")
    print(f"  never given: {_listed(every - reached)}")
    return 0 if reached else 1


def print_source(name: str, one: Noticed[Plant]) -> None:
    """Prints what one source reached."""
    print(
        f"{name}: {one.right} of {one.cases} cases are right, reach {len(one.reached)} parameters, "
        f"notice {len(one.noticed)}",
        flush=True,
    )


def _listed(plants: set[Plant]) -> str:
    return ", ".join(map(str, sorted(plants))) or "none"
