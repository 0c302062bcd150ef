"""Appeals: the library's further runs of cases whose outputs differ, and the rulings they lead to.

Appeals are heard many at once, so that the library is imported once for all of them in each of the ways it
is run; what it says is kept beside its references, so that a case is heard once for all compilers, releases
and repeats. A passing case costs nothing. The decision itself is `fuzzing.oracles.referee`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.cases.values import Value, value_from_json
from fuzzing.execute.execution import Execution
from fuzzing.execute.library import SPOILED, Libraries, Library, why
from fuzzing.execute.references import outputs_to_json
from fuzzing.oracles.judging import Ruling, ruled
from fuzzing.oracles.moving import moved_alike, moved_apart
from fuzzing.oracles.referee import Witnesses, excused, review, trapped
from fuzzing.outcomes import Outcome

Outputs = tuple[tuple[str, Value], ...]

#: glibc fills what malloc hands out with this byte's complement and what is freed with the byte itself
#: (mallopt(3), M_PERTURB): who reads memory before it is written reads something else than usual.
_PERTURBED = {"MALLOC_PERTURB_": "165"}
_MAX_KEPT = 8 << 20  # bytes of outputs kept for one case; larger ones are heard again
_SUFFIX = ".appeal4"  # with another number, what was heard otherwise is heard again

_WIDE = {"precision": "float64"}


@dataclass(frozen=True)
class Appeal:
    """A case whose outputs differ, or whose program divided integers as nobody may.

    case      with its reference
    computed  whether the library computed the reference, rather than shipping it with its test
    outputs   what the compiled program gave
    outcome   as judged so far
    """

    case: TestCase
    computed: bool
    outputs: Outputs
    outcome: Outcome

    @property
    def subject(self) -> _Subject:
        """What the library is asked about."""
        return _Subject(self.case, self.computed)


@dataclass(frozen=True)
class _Subject:
    """A case, and whether its reference was computed."""

    case: TestCase
    computed: bool


class Appeals:
    """Hears appeals about the cases of one corpus."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries

    def hear(self, appeals: list[Appeal]) -> Iterator[Outcome]:
        """The outcome of each appeal, in their order."""
        subjects = {appeal.case.id: appeal.subject for appeal in appeals}
        witnesses: dict[str, Witnesses] = {}
        for library, some in self._libraries.groups(subject.case for subject in subjects.values()):
            witnesses |= _Hearing(library, [subjects[case.id] for case in some]).witnesses()
        for appeal in appeals:
            ruling = _ruling(appeal, witnesses[appeal.case.id])
            yield appeal.outcome if ruling is None else ruled(appeal.outcome, ruling)

    def float64(self, case: TestCase, *, computed: bool) -> Outputs | None:
        """What a float64 run of a case gives; None if that cannot be had. `computed` as in Appeal."""
        hearing = _Hearing(self._libraries.of(case), [_Subject(case, computed)])
        return hearing.witnesses()[case.id].float64


def _ruling(appeal: Appeal, witnesses: Witnesses) -> Ruling | None:
    """None if the outcome stands."""
    if trapped(appeal.outcome):
        return excused(witnesses)
    return review(appeal.case, appeal.outputs, witnesses)


class _Hearing:
    """One library's word on several cases."""

    def __init__(self, library: Library, subjects: list[_Subject]) -> None:
        self._library = library
        self._known = {item.case.id: known for item in subjects if (known := _load(library, item.case))}
        self._subjects = [item for item in subjects if item.case.id not in self._known]
        self._seen: dict[tuple[str, str], Execution] = {}

    def witnesses(self) -> dict[str, Witnesses]:
        """What the library makes of each case, by id."""
        if self._subjects:
            self._ask()
        for subject in self._subjects:
            self._known[subject.case.id] = self._told(subject)
        return self._known

    def _ask(self) -> None:
        cases = [subject.case for subject in self._subjects]
        shipped = [subject.case for subject in self._subjects if not subject.computed]
        self._run("run", shipped)
        self._run("again", cases, environment=_PERTURBED)
        options = self._library.backend.options
        if "precision" not in options:
            return
        filled = {"undefined": "0"} if "undefined" in options else {}
        self._run("float64", cases, options=_WIDE | filled, moved=True)
        if filled:
            self._run("refilled", cases, options=_WIDE | {"undefined": "1"})

    def _run(self, how: str, cases: list[TestCase], *, moved: bool = False, **given: Any) -> None:
        def jobs() -> Iterator[tuple[tuple[str, str], TestCase]]:
            for case in cases:
                yield (how, case.id), case
                if moved:
                    yield from self._moved(case)

        if cases:
            self._seen.update(self._library.run(jobs(), **given))

    @staticmethod
    def _moved(case: TestCase) -> Iterator[tuple[tuple[str, str], TestCase]]:
        values = case.values()
        for sign in (1, -1):
            yield (f"alike{sign}", case.id), replace(case, inputs=moved_alike(values, sign))
            yield (f"apart{sign}", case.id), replace(case, inputs=moved_apart(values, sign))

    def _told(self, subject: _Subject) -> Witnesses:
        case = subject.case
        assert case.expected is not None
        first = case.expected if subject.computed else self._outputs("run", case)
        runs = tuple(run for run in (first, self._outputs("again", case)) if run is not None)
        found = Witnesses(
            runs=runs,
            float64=self._outputs("float64", case),
            alike=self._several("alike", case),
            apart=self._several("apart", case),
            refilled=self._outputs("refilled", case),
            trouble=self._trouble(case),
        )
        if not self._passing(case):
            _store(self._library, case, found)
        return found

    def _outputs(self, how: str, case: TestCase) -> Outputs | None:
        seen = self._seen.get((how, case.id))
        return seen.outputs if seen is not None and seen.ending == "returned" else None

    def _several(self, how: str, case: TestCase) -> tuple[Outputs, ...]:
        runs = (self._outputs(f"{how}{sign}", case) for sign in (1, -1))
        return tuple(run for run in runs if run is not None)

    def _trouble(self, case: TestCase) -> str:
        """Why there is no float64 run beside one of the library's own; "" if there is."""
        for how in ("run", "again", "float64"):
            seen = self._seen.get((how, case.id))
            if seen is not None and seen.ending != "returned":
                return why(f"{self._library.backend.name} ({how})", seen).splitlines()[0][:120]
        return ""

    def _passing(self, case: TestCase) -> bool:
        """Whether some run ended for its time or memory: others' limits may suffice."""
        mine = (seen for (_, case_id), seen in self._seen.items() if case_id == case.id)
        return any(seen.ending in ("hung", "out_of_memory") for seen in mine)


_MANY = ("runs", "alike", "apart")
_ONE = ("float64", "refilled")


def _store(library: Library, case: TestCase, found: Witnesses) -> None:
    record: dict[str, Any] = {"trouble": found.trouble}
    record |= {name: [outputs_to_json(run) for run in getattr(found, name)] for name in _MANY}
    for name in _ONE:
        outputs = getattr(found, name)
        record[name] = None if outputs is None else outputs_to_json(outputs)
    if sum(len(value["data"]) for value in _tensors(record)) <= _MAX_KEPT:
        library.store(case, record, _SUFFIX)


def _tensors(record: Any) -> Iterator[dict[str, Any]]:
    if isinstance(record, dict) and "data" in record:
        yield record
    elif isinstance(record, (dict, list)):
        for item in record.values() if isinstance(record, dict) else record:
            yield from _tensors(item)


def _load(library: Library, case: TestCase) -> Witnesses | None:
    record = library.load(case, _SUFFIX)
    if record is None:
        return None
    try:
        many = {name: tuple(_read(run) for run in record[name]) for name in _MANY}
        one = {name: None if record[name] is None else _read(record[name]) for name in _ONE}
        return Witnesses(
            **many, float64=one["float64"], refilled=one["refilled"], trouble=str(record["trouble"])
        )
    except SPOILED:
        return None


def _read(items: Any) -> Outputs:
    return tuple((str(name), value_from_json(value)) for name, value in items)
