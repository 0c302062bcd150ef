"""Rechecks: further reference runs of cases whose outputs differ, and the resulting decisions.

Requests are batched, so that the library is imported once per batch for each way of running it. Results are
stored beside the references and serve all compilers, releases and repeats. Passing cases cost nothing.
`fuzzing.oracles.float64_check` decides.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fuzzing.cases import EquivalentPair, OnnxModel, Tensor, TestCase
from fuzzing.cases.values import Value, value_from_json
from fuzzing.execute.reference_outputs import outputs_to_json
from fuzzing.execute.reference_runner import (
    UNREADABLE_RECORD_ERRORS,
    ReferenceRunner,
    ReferenceRunners,
    describe_failure,
)
from fuzzing.execution import Execution
from fuzzing.oracles.decision import Decision, name_sides, with_decision
from fuzzing.oracles.element_types import ROUNDING, decode
from fuzzing.oracles.float64_check import (
    ReferenceRuns,
    decide_outputs,
    decide_trap,
    float64_problem,
    is_integer_trap,
)
from fuzzing.oracles.pair_sides import exchange, separate
from fuzzing.oracles.perturbation import perturb_equally, perturb_independently
from fuzzing.outcomes import Outcome

Outputs = tuple[tuple[str, Value], ...]

#: glibc fills allocated memory with this byte's complement and freed memory with the byte itself (mallopt(3),
#: M_PERTURB), so that reads of uninitialized memory return other values than usual.
_PERTURBED = {"MALLOC_PERTURB_": "165"}
_MAX_KEPT = 8 << 20  # bytes of outputs stored for one case; larger ones are computed again
_SUFFIX = ".recheck8"  # another number invalidates stored results

_WIDE = {"precision": "float64"}
#: A number of a window that is 0 up to rounding is 0 in a run that bools are compared with, too.
_OF_WINDOWS = {"up": "up", "reversed": "reversed", "down": "rounded", "rounded": "down"}


@dataclass(frozen=True)
class RecheckRequest:
    """A case whose outputs differ, or whose program trapped in an integer division.

    case      with its reference
    computed  whether the library computed the reference, rather than shipping it with its test
    outputs   of the compiled program
    outcome   as decided so far
    computed_in  of the backend, see `fuzzing.backends.base.Backend`
    mirror    for a pair, the same with its sides exchanged: the left one is judged too
    """

    case: TestCase
    computed: bool
    outputs: Outputs
    outcome: Outcome
    computed_in: Mapping[str, str] = field(default_factory=dict)
    mirror: RecheckRequest | None = None

    @classmethod
    def of(
        cls,
        case: TestCase,
        computed: bool,
        execution: Execution,
        outcome: Outcome,
        computed_in: Mapping[str, str],
    ) -> RecheckRequest:
        """The request for an execution of `case`."""
        if not isinstance(case.program, EquivalentPair) or execution.ending != "returned":
            return cls(case, computed, execution.outputs, outcome, computed_in)
        swapped, exchanged = exchange(case, execution)
        mirror = cls(swapped, False, exchanged.outputs, outcome, computed_in)
        single, separated = separate(case, execution)
        return cls(single, False, separated.outputs, outcome, computed_in, mirror)

    @property
    def subject(self) -> _Subject:
        """The case to run on the library."""
        return _Subject(self.case, self.computed, self.computed_in)


@dataclass(frozen=True)
class _Subject:
    """A case, whether its reference was computed, and the precision to which inputs are moved."""

    case: TestCase
    computed: bool
    computed_in: Mapping[str, str]

    @property
    def suffix(self) -> str:
        """Ends the name of the stored runs: those whose inputs move further are others."""
        types = {value.dtype for _, value in self.case.values() if isinstance(value, Tensor)}
        narrow = {f"-{self.computed_in[name]}" for name in types if name in self.computed_in}
        return _SUFFIX + "".join(sorted(narrow))


class Rechecker:
    """Rechecks cases of one corpus."""

    def __init__(self, reference_runners: ReferenceRunners) -> None:
        self._reference_runners = reference_runners

    def recheck(self, recheck_requests: list[RecheckRequest]) -> Iterator[Outcome]:
        """The outcome of each request, in order."""
        everything = [*recheck_requests, *(item.mirror for item in recheck_requests if item.mirror)]
        subjects = {recheck_request.case.id: recheck_request.subject for recheck_request in everything}
        reference_runs: dict[str, ReferenceRuns] = {}
        for runner, some in self._reference_runners.groups(subject.case for subject in subjects.values()):
            reference_runs |= _ReferenceRunBatch(
                runner, [subjects[case.id] for case in some]
            ).reference_runs()
        for recheck_request in recheck_requests:
            decision = _decide(recheck_request, reference_runs[recheck_request.case.id])
            if (mirror := recheck_request.mirror) is not None:
                mirrored = _decide(mirror, reference_runs[mirror.case.id])
                decision = _decide_pair(
                    decision,
                    mirrored,
                    _left_open(recheck_request, decision, reference_runs[recheck_request.case.id])
                    | _left_open(mirror, mirrored, reference_runs[mirror.case.id]),
                )
            yield (
                recheck_request.outcome
                if decision is None
                else with_decision(recheck_request.outcome, decision)
            )

    def float64(self, case: TestCase, *, computed: bool) -> Outputs | None:
        """The outputs of a float64 run; None if there can be none. `computed` as in RecheckRequest."""
        run_batch = _ReferenceRunBatch(self._reference_runners.of(case), [_Subject(case, computed, {})])
        return run_batch.reference_runs()[case.id].float64


def _move_program(case: TestCase, what: str, *given: Any) -> TestCase | None:
    """The case with what in its ONNX model is moved; None if there is nothing to move."""
    if not isinstance(case.program, OnnxModel):
        return None
    # Found by name, as backends are: the control plane imports this module, and never onnx.
    module = importlib.import_module(f"fuzzing.backends.onnx_reference.moved_{what}")
    model: bytes | None = getattr(module, f"move_{what}")(case.program.model, *given)
    return None if model is None else replace(case, program=OnnxModel(model))


def _find_exact_inputs(case: TestCase) -> frozenset[str]:
    """The inputs of an ONNX model that no rounding reaches."""
    if not isinstance(case.program, OnnxModel):
        return frozenset()
    module = importlib.import_module("fuzzing.backends.onnx_reference.exact_inputs")
    given = {
        name: decode(value.dtype, value.array())
        for name, value in case.values()
        if isinstance(value, Tensor) and value.dtype in ROUNDING
    }
    exact: frozenset[str] = module.find_exact_inputs(case.program.model, given)
    return exact


def _move_roundings(case: TestCase, how: str, computed_in: Mapping[str, str]) -> TestCase:
    """The case with what its model computes moved, besides its inputs."""
    case = _move_program(case, "results", how, computed_in) or case
    case = _move_program(case, "windows", _OF_WINDOWS[how]) or case
    for what in ("transforms", "places"):
        case = _move_program(case, what, how) or case
    return case


def _decide(recheck_request: RecheckRequest, reference_runs: ReferenceRuns) -> Decision | None:
    """The new decision; None if the outcome is unchanged."""
    if is_integer_trap(recheck_request.outcome):
        return decide_trap(reference_runs)
    return decide_outputs(
        recheck_request.case, recheck_request.outputs, reference_runs, recheck_request.computed_in
    )


def _left_open(
    recheck_request: RecheckRequest, decision: Decision | None, reference_runs: ReferenceRuns
) -> set[str]:
    """The outputs with elements that the program leaves open, such as the order of equal numbers.

    None where the outputs taken as expected are not its library's: then it is that side that may be wrong.
    """
    if decision is None or float64_problem(recheck_request.case, reference_runs):
        return set()
    return {item.output for item in decision.excused}


def _decide_pair(right: Decision | None, left: Decision | None, left_open: set[str]) -> Decision | None:
    """The decision on both programs of a pair: a failure of the right one, else of the left one.

    What one of them leaves open is open for the other, its equal: no difference in such an output counts.
    """
    for judged, decision in (("right", right), ("left", left)):
        if decision is None or not decision.verdict.is_failure:
            continue
        mismatches = tuple(item for item in decision.mismatches if item.output not in left_open)
        if mismatches:
            return name_sides(replace(decision, mismatches=mismatches), judged)
    return left if right is not None and right.verdict.is_failure else right


class _ReferenceRunBatch:
    """One library's further runs of several cases."""

    def __init__(self, runner: ReferenceRunner, subjects: list[_Subject]) -> None:
        self._runner = runner
        self._known = {item.case.id: known for item in subjects if (known := _load(runner, item))}
        self._subjects = [item for item in subjects if item.case.id not in self._known]
        self._executions: dict[tuple[str, str], Execution] = {}

    def reference_runs(self) -> dict[str, ReferenceRuns]:
        """The library's runs of each case, by id."""
        if self._subjects:
            self._run_all()
        for subject in self._subjects:
            self._known[subject.case.id] = self._collect(subject)
        return self._known

    def _run_all(self) -> None:
        cases = [subject.case for subject in self._subjects]
        shipped = [subject.case for subject in self._subjects if not subject.computed]
        self._run("run", shipped)
        self._run("again", cases, environment=_PERTURBED)
        options = self._runner.backend.options
        if "precision" not in options:
            return
        filled = {"undefined": "0"} if "undefined" in options else {}
        self._run("float64", cases, options=_WIDE | filled, perturbed=True)
        if filled:
            self._run("refilled", cases, options=_WIDE | {"undefined": "1"})

    def _run(self, how: str, cases: list[TestCase], *, perturbed: bool = False, **given: Any) -> None:
        def jobs() -> Iterator[tuple[tuple[str, str], TestCase]]:
            narrow = {item.case.id: item.computed_in for item in self._subjects} if perturbed else {}
            for case in cases:
                yield (how, case.id), case
                if perturbed:
                    yield from self._perturbed(case, narrow[case.id])

        if cases:
            self._executions.update(self._runner.run(jobs(), **given))

    @staticmethod
    def _perturbed(
        case: TestCase, computed_in: Mapping[str, str]
    ) -> Iterator[tuple[tuple[str, str], TestCase]]:
        values, exact = case.values(), _find_exact_inputs(case)
        for sign in (1, -1):
            equally = perturb_equally(values, sign, computed_in, exact)
            independently = perturb_independently(values, sign, computed_in, exact)
            moves = ("up", "reversed") if sign > 0 else ("down", "rounded")
            one, another = (_move_roundings(case, how, computed_in) for how in moves)
            yield (f"perturbed_equally{sign}", case.id), replace(one, inputs=equally)
            yield (f"perturbed_independently{sign}", case.id), replace(another, inputs=independently)
            other = _move_program(case, "constants", sign, computed_in)
            if other is not None:
                yield (f"moved_constants{sign}", case.id), other

    def _collect(self, subject: _Subject) -> ReferenceRuns:
        case = subject.case
        assert case.expected is not None
        first = case.expected if subject.computed else self._outputs("run", case)
        runs = tuple(run for run in (first, self._outputs("again", case)) if run is not None)
        found = ReferenceRuns(
            runs=runs,
            float64=self._outputs("float64", case),
            perturbed_equally=self._signed_outputs("perturbed_equally", case),
            perturbed_independently=self._signed_outputs("perturbed_independently", case),
            moved_constants=self._signed_outputs("moved_constants", case),
            refilled=self._outputs("refilled", case),
            problem=self._problem(case),
        )
        if not self._is_transient(case):
            _store(self._runner, subject, found)
        return found

    def _outputs(self, how: str, case: TestCase) -> Outputs | None:
        execution = self._executions.get((how, case.id))
        return execution.outputs if execution is not None and execution.ending == "returned" else None

    def _signed_outputs(self, how: str, case: TestCase) -> tuple[Outputs, ...]:
        runs = (self._outputs(f"{how}{sign}", case) for sign in (1, -1))
        return tuple(run for run in runs if run is not None)

    def _problem(self, case: TestCase) -> str:
        """Why there is no float64 run for a case that the library ran; "" if there is one."""
        for how in ("run", "again", "float64"):
            execution = self._executions.get((how, case.id))
            if execution is not None and execution.ending != "returned":
                return describe_failure(f"{self._runner.backend.name} ({how})", execution).splitlines()[0][
                    :120
                ]
        return ""

    def _is_transient(self, case: TestCase) -> bool:
        """Whether a run ended for its time or memory, so that other limits may suffice."""
        mine = (execution for (_, case_id), execution in self._executions.items() if case_id == case.id)
        return any(execution.exhausted for execution in mine)


_RUN_LISTS = ("runs", "perturbed_equally", "perturbed_independently", "moved_constants")
_SINGLE_RUNS = ("float64", "refilled")


def _store(runner: ReferenceRunner, subject: _Subject, found: ReferenceRuns) -> None:
    record: dict[str, Any] = {"problem": found.problem}
    record |= {name: [outputs_to_json(run) for run in getattr(found, name)] for name in _RUN_LISTS}
    for name in _SINGLE_RUNS:
        outputs = getattr(found, name)
        record[name] = None if outputs is None else outputs_to_json(outputs)
    if sum(len(value["data"]) for value in _tensors(record)) <= _MAX_KEPT:
        runner.store(subject.case, record, subject.suffix)


def _tensors(record: Any) -> Iterator[dict[str, Any]]:
    if isinstance(record, dict) and "data" in record:
        yield record
    elif isinstance(record, (dict, list)):
        for item in record.values() if isinstance(record, dict) else record:
            yield from _tensors(item)


def _load(runner: ReferenceRunner, subject: _Subject) -> ReferenceRuns | None:
    record = runner.load(subject.case, subject.suffix)
    if record is None:
        return None
    try:
        many = {name: tuple(_read(run) for run in record[name]) for name in _RUN_LISTS}
        one = {name: None if record[name] is None else _read(record[name]) for name in _SINGLE_RUNS}
        return ReferenceRuns(
            **many, float64=one["float64"], refilled=one["refilled"], problem=str(record["problem"])
        )
    except UNREADABLE_RECORD_ERRORS:
        return None


def _read(items: Any) -> Outputs:
    return tuple((str(name), value_from_json(value)) for name, value in items)
