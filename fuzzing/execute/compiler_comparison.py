"""Runs one case on many compilers and prints one table.

`python -m fuzzing.execute.compiler_comparison SPEC.json` reads

    {"corpus": folder, "case": id, "backends": [{"backend": name, "options": {…}, "device": "CPU",
     "python": interpreter}, …], "limits": {…}}

where all but "corpus", "case" and each "backend" are optional, and prints one JSON object

    {"case": id, "invalid": "" | why, "rows": [{"label", "backend", "options", "verdict", "summary",
     "seconds", "to_reference", "to_float64", "group", "outlier"}, …]}

with the rows in the order given, see `fuzzing.oracles.differential.Row`. A compiler that cannot be started,
or takes no such programs, has the verdict "" and the reason as its summary. Errors are printed as in
`fuzzing.entry_point`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.entry_point import emit_event, run_main
from fuzzing.errors import ToolchainError, UsageError
from fuzzing.execute.computed_precision import ComputedPrecision
from fuzzing.execute.library_check import LibraryCheck
from fuzzing.execute.limits import Limits
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_outputs import ReferenceOutputs
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome, format_configuration
from fuzzing.oracles.differential import Row, differential
from fuzzing.oracles.float64_check import needs_recheck
from fuzzing.oracles.reference import needs_reference
from fuzzing.oracles.tolerance_profiles import DEFAULT
from fuzzing.outcomes import Outcome


@dataclass(frozen=True)
class ComparedBackend:
    """A backend in one configuration; its label is its name and its options that are not the default."""

    backend: str
    options: dict[str, str]
    device: str
    python: str

    @property
    def label(self) -> str:
        """Its name in the table."""
        cls = backends.get(self.backend)
        device = [] if self.device == cls.devices[0] else [self.device]
        return " ".join(filter(None, [cls.name, *device, format_configuration(self.options)]))


@dataclass(frozen=True)
class ComparisonSpec:
    """What to compare. Raises UsageError if two backends are the same."""

    corpus: str
    case: str
    compared: tuple[ComparedBackend, ...]
    limits: Limits

    def __post_init__(self) -> None:
        labels = [one.label for one in self.compared]
        double = next((label for label in labels if labels.count(label) > 1), None)
        if double:
            raise UsageError(f"{double} is there twice; give each backend with options of its own")

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> ComparisonSpec:
        """The spec of a JSON object; raises UsageError."""
        try:
            compared = tuple(_compared_backend(dict(item)) for item in obj["backends"])
            limits = Limits.from_json(dict(obj.get("limits", {})))
            return cls(str(obj["corpus"]), str(obj["case"]), compared, limits)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise UsageError(f"this is no comparison: {error!r}") from None

    @classmethod
    def read(cls, path: Path) -> ComparisonSpec:
        """The spec in a file; raises UsageError."""
        try:
            return cls.from_json(json.loads(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the comparison {path}: {error}") from None


def _compared_backend(given: dict[str, Any]) -> ComparedBackend:
    cls = backends.get(str(given["backend"]))
    device = str(given.get("device", cls.devices[0]))
    if device not in cls.devices:
        raise UsageError(f"{cls.name} has no device {device!r}; it has {', '.join(cls.devices)}")
    options = cls.non_default_options(dict(given.get("options", {})))
    return ComparedBackend(str(given["backend"]), options, device, str(given.get("python", sys.executable)))


class ComparisonTable:
    """One case on several backends. A reference library that Assay does not bundle is the first backend's.

    Rows whose options ask the library for the same outputs, see `Backend.reference_options`, are compared
    with one another; others have other outputs, such as gradients.
    """

    def __init__(self, spec: ComparisonSpec) -> None:
        self._spec = spec
        self._case = Corpus(spec.corpus).get(spec.case)

    def to_json(self) -> dict[str, Any]:
        """The table, as in the module docstring."""
        rows: dict[str, dict[str, Any]] = {}
        errors = []
        for options, compared in self._by_reference().items():
            comparable = _ComparableRows(self._spec, compared, dict(options))
            [(case, error)] = ReferenceOutputs(comparable.reference_runners).complete([self._case])
            errors.append(error)
            if error:
                rows |= {one.label: _row(one, error, None, _EMPTY_ROW) for one in compared}
                continue
            last_group = max((row["group"] or 0 for row in rows.values()), default=0)
            for label, row in comparable.to_json(case, computed=needs_reference(self._case)).items():
                if row["group"]:  # 0 agrees with the library, whichever outputs that has
                    row["group"] += last_group
                rows[label] = row
        if errors and all(errors):
            return {"case": self._spec.case, "invalid": errors[0], "rows": []}
        in_order = [rows[one.label] for one in self._spec.compared]
        return {"case": self._spec.case, "invalid": "", "rows": in_order}

    def _by_reference(self) -> dict[tuple[tuple[str, str], ...], list[ComparedBackend]]:
        """The backends by the options of the library's runs that they are compared with."""
        found: dict[tuple[tuple[str, str], ...], list[ComparedBackend]] = {}
        for one in self._spec.compared:
            cls = backends.get(one.backend)
            asked = cls.reference_options(cls.resolve_options(one.options))
            found.setdefault(tuple(sorted(asked.items())), []).append(one)
        return found


class _ComparableRows:
    """Backends with one reference.

    options  of the library's runs
    """

    def __init__(
        self, spec: ComparisonSpec, compared: Sequence[ComparedBackend], options: Mapping[str, str]
    ) -> None:
        self._limits, self._compared = spec.limits, compared
        python = spec.compared[0].python
        self.reference_runners = ReferenceRunners(Path(spec.corpus), python, spec.limits, options)
        self._rechecker = Rechecker(self.reference_runners)

    def to_json(self, case: TestCase, *, computed: bool) -> dict[str, dict[str, Any]]:
        """The rows by label; `case` has its reference, which the library computed or its test shipped."""
        ran = {one.label: self._run(one, case, computed=computed) for one in self._compared}
        assert case.expected is not None
        distances = differential(
            {label: _outputs(execution) for label, (_, execution) in ran.items()},
            case.expected,
            self._rechecker.float64(case, computed=computed),
            tolerance=case.tolerance,
            comparison=case.comparison,
        )
        return {one.label: _row(one, *ran[one.label], distances[one.label]) for one in self._compared}

    def _run(
        self, one: ComparedBackend, case: TestCase, *, computed: bool
    ) -> tuple[Outcome | str, Execution | None]:
        """The outcome, or the reason why there is none, and the execution."""
        cls = backends.get(one.backend)
        if case.program.kind not in cls.kinds:
            return f"{cls.name} takes no {case.program.kind} programs", None
        options = cls.resolve_options(one.options)
        command = WorkerCommand(one.python, one.backend, one.device, options, self._limits)
        try:
            [(_, execution)] = Supervisor[None](command).run([(None, case)])
        except ToolchainError as error:
            return str(error).splitlines()[0], None
        computed_in = ComputedPrecision(cls, one.device, options).of(case.program)

        def judge(case: TestCase, computed: bool, execution: Execution) -> Outcome:
            outcome = decide_outcome(case, execution, cls, "", one.device, computed_in=computed_in)
            if needs_recheck(outcome, DEFAULT):
                request = RecheckRequest.of(case, computed, execution, outcome, computed_in)
                [outcome] = self._rechecker.recheck([request])
            return outcome

        with contextlib.closing(LibraryCheck(cls, command, self.reference_runners, judge)) as check:
            outcome = check.without_library_failures(case, computed, judge(case, computed, execution))
        return outcome, execution


_EMPTY_ROW = Row(to_reference=None, to_float64=None, group=None, outlier=False)


def _row(
    one: ComparedBackend, outcome: Outcome | str, execution: Execution | None, distances: Row
) -> dict[str, Any]:
    """A row as JSON; `outcome` may be the reason why there is none."""
    return {
        "label": one.label,
        "backend": backends.get(one.backend).name,
        "options": one.options,
        "verdict": outcome.verdict.value if isinstance(outcome, Outcome) else "",
        "summary": outcome.summary if isinstance(outcome, Outcome) else outcome,
        "seconds": 0.0 if execution is None else sum(execution.durations.values()),
    } | asdict(distances)


def _outputs(execution: Execution | None) -> tuple[tuple[str, Any], ...] | None:
    return execution.outputs if execution is not None and execution.ending == "returned" else None


def main(arguments: Sequence[str]) -> int:
    """The command line of the module."""

    def work() -> None:
        if len(arguments) != 1:
            raise UsageError("usage: python -m fuzzing.execute.compiler_comparison SPEC.json")
        emit_event(**ComparisonTable(ComparisonSpec.read(Path(arguments[0]))).to_json())

    return run_main("python -m fuzzing.execute.compiler_comparison", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
