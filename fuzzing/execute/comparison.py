"""One case on many compilers, as one table.

`python -m fuzzing.execute.comparison SPEC.json` reads

    {"corpus": folder, "case": id, "backends": [{"backend": name, "options": {…}, "device": "CPU",
     "python": interpreter}, …], "limits": {…}}

where all but "corpus", "case" and each "backend" may be left out, and prints one JSON object

    {"case": id, "invalid": "" | why, "rows": [{"label", "backend", "options", "verdict", "summary",
     "seconds", "to_reference", "to_float64", "group", "lonely"}, …]}

with the rows in the order given; what they mean is told in `fuzzing.oracles.differential.Row`. A compiler
that cannot be started, or takes no such programs, has the verdict "" and says why in its summary. Errors
are told as `fuzzing.program` does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.errors import ToolchainError, UsageError
from fuzzing.execute.appeals import Appeal, Appeals
from fuzzing.execute.execution import Execution
from fuzzing.execute.library import Libraries
from fuzzing.execute.limits import Limits
from fuzzing.execute.process import Command
from fuzzing.execute.references import References
from fuzzing.execute.supervisor import Supervisor
from fuzzing.oracles import configuration, judge
from fuzzing.oracles.differential import differential
from fuzzing.oracles.profiles import DEFAULT
from fuzzing.oracles.referee import appealable
from fuzzing.oracles.reference import reference_needed
from fuzzing.outcomes import Outcome
from fuzzing.program import ended, event


@dataclass(frozen=True)
class Contender:
    """A backend in one configuration; its label is its name and what is not its default."""

    backend: str
    options: dict[str, str]
    device: str
    python: str

    @property
    def label(self) -> str:
        """How the table calls it."""
        cls = backends.get(self.backend)
        device = [] if self.device == cls.devices[0] else [self.device]
        return " ".join(filter(None, [cls.name, *device, configuration(self.options)]))


@dataclass(frozen=True)
class Spec:
    """What to compare. Raises UsageError if two contenders are the same."""

    corpus: str
    case: str
    contenders: tuple[Contender, ...]
    limits: Limits

    def __post_init__(self) -> None:
        labels = [one.label for one in self.contenders]
        double = next((label for label in labels if labels.count(label) > 1), None)
        if double:
            raise UsageError(f"{double} is there twice; give each backend with options of its own")

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Spec:
        """The spec of a JSON object; raises UsageError."""
        try:
            contenders = tuple(_contender(dict(item)) for item in obj["backends"])
            limits = Limits.from_json(dict(obj.get("limits", {})))
            return cls(str(obj["corpus"]), str(obj["case"]), contenders, limits)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise UsageError(f"this is no comparison: {error!r}") from None

    @classmethod
    def read(cls, path: Path) -> Spec:
        """The spec in a file; raises UsageError."""
        try:
            return cls.from_json(json.loads(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read the comparison {path}: {error}") from None


def _contender(given: dict[str, Any]) -> Contender:
    cls = backends.get(str(given["backend"]))
    device = str(given.get("device", cls.devices[0]))
    if device not in cls.devices:
        raise UsageError(f"{cls.name} has no device {device!r}; it has {', '.join(cls.devices)}")
    options = cls.unusual(dict(given.get("options", {})))
    return Contender(str(given["backend"]), options, device, str(given.get("python", sys.executable)))


class Table:
    """One case and its contenders. The library that judges it is the first contender's, if it is not ours."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._bare = Corpus(spec.corpus).get(spec.case)
        python = spec.contenders[0].python if spec.contenders else sys.executable
        self._libraries = Libraries(Path(spec.corpus), python, spec.limits)
        self._appeals = Appeals(self._libraries)

    def to_json(self) -> dict[str, Any]:
        """The table, as the module's text says."""
        [(case, error)] = References(self._libraries).complete([self._bare])
        if error:
            return {"case": self._spec.case, "invalid": error, "rows": []}
        ran = [self._run(one, case) for one in self._spec.contenders]
        labels = [one.label for one in self._spec.contenders]
        assert case.expected is not None
        rows = differential(
            {label: _outputs(execution) for label, (_, execution) in zip(labels, ran, strict=True)},
            case.expected,
            self._float64(case),
            tolerance=case.tolerance,
            comparison=case.comparison,
        )
        told = [
            {
                "label": one.label,
                "backend": backends.get(one.backend).name,
                "options": one.options,
                "verdict": outcome.verdict.value if isinstance(outcome, Outcome) else "",
                "summary": outcome.summary if isinstance(outcome, Outcome) else outcome,
                "seconds": 0.0 if execution is None else sum(execution.durations.values()),
            }
            | asdict(rows[one.label])
            for one, (outcome, execution) in zip(self._spec.contenders, ran, strict=True)
        ]
        return {"case": self._spec.case, "invalid": "", "rows": told}

    def _run(self, one: Contender, case: TestCase) -> tuple[Outcome | str, Execution | None]:
        """The outcome, or why there is none, and what was seen."""
        cls = backends.get(one.backend)
        if case.program.kind not in cls.kinds:
            return f"{cls.name} takes no {case.program.kind} programs", None
        command = Command(one.python, one.backend, one.device, cls.settle(one.options), self._spec.limits)
        try:
            [(_, execution)] = Supervisor[None](command).run([(None, case)])
        except ToolchainError as error:
            return str(error).splitlines()[0], None
        outcome = judge(case, execution, cls, "", one.device)
        if appealable(outcome, DEFAULT):
            [outcome] = self._appeals.hear([self._appeal(case, execution, outcome)])
        return outcome, execution

    def _appeal(self, case: TestCase, execution: Execution, outcome: Outcome) -> Appeal:
        return Appeal(case, reference_needed(self._bare), execution.outputs, outcome)

    def _float64(self, case: TestCase) -> tuple[tuple[str, Any], ...] | None:
        return self._appeals.float64(case, computed=reference_needed(self._bare))


def _outputs(execution: Execution | None) -> tuple[tuple[str, Any], ...] | None:
    return execution.outputs if execution is not None and execution.ending == "returned" else None


def main(arguments: Sequence[str]) -> int:
    """The command line of the module; see above."""

    def work() -> None:
        if len(arguments) != 1:
            raise UsageError("usage: python -m fuzzing.execute.comparison SPEC.json")
        event(**Table(Spec.read(Path(arguments[0]))).to_json())

    return ended("python -m fuzzing.execute.comparison", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
