"""Subjects of the prioritization experiment: which cases find which bugs of an old compiler release.

A subject's measurement is a gzipped file of JSON lines: versions, then for each case its operator instance,
verdict, the bug it finds (None if none) and its seconds. It is stored in the repository, so orders can be
compared without the release.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from bot.toolchains.installer import Installer
from fuzzing import backends
from fuzzing.compiler_messages import parse_message
from fuzzing.outcomes import Outcome, Verdict
from fuzzing.prioritize.instances import Instance

FOLDER = Path(__file__).parent / "prioritization_data"
SEED = 20231122  # of a sample of cases
_ACCUSED = [verdict.value for verdict in Verdict if verdict.is_failure]


@dataclass(frozen=True)
class Subject:
    """A release and its cases.

    extra    further packages of its venv: the library of torch and Keras programs
    sample   number of cases, drawn with SEED; None for all
    python   the package of its Python frontend, whose coverage is measured too
    """

    backend: str
    release: str
    source: str
    extra: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    sample: int | None = None
    python: str = ""


_TORCH = ("torch==2.13.0", "packaging")
SUBJECTS = {
    "openvino-2023.0-onnx": Subject("openvino", "2023.0.0", "onnx-node-tests"),
    "openvino-2023.1-onnx": Subject("openvino", "2023.1.0", "onnx-node-tests"),
    "openvino-2023.3-onnx": Subject("openvino", "2023.3.0", "onnx-node-tests"),
    "openvino-2024.0-onnx": Subject("openvino", "2024.0.0", "onnx-node-tests"),
    # Built against numpy 1, as all releases before 1.19, without declaring it.
    "onnxruntime-1.17-onnx": Subject("onnxruntime", "1.17.3", "onnx-node-tests", ("numpy<2",)),
    "tvm-0.25-onnx": Subject(
        "tvm", "0.25.0.post1", "onnx-node-tests", sample=1000, python="tvm.relax.frontend.onnx"
    ),
    "openvino-2023.1-torch": Subject(
        "openvino", "2023.1.0", "torch-opinfo", _TORCH, (("capture", "traced"),), 2000
    ),
}


@dataclass(frozen=True)
class Measured:
    """One case of a subject.

    converter   the bug as the paper counts it: by the conversion function, that is by the operator
    signature   the bug as the released code counts it; for wrong results, by operator
    """

    instance: Instance
    verdict: str
    seconds: float
    converter: str | None
    signature: str | None


def load(name: str) -> list[Measured]:
    """A subject's measurement, in its source's order."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        next(file)
        return [_from_json(json.loads(line)) for line in file]


def _from_json(obj: dict[str, Any]) -> Measured:
    instance = Instance.from_json(obj.pop("instance"))
    return Measured(instance, **obj)


def coverage_file(name: str) -> Path:
    """Path of a subject's coverage, if measured."""
    return FOLDER / f"{name}.coverage.jsonl.gz"


def measured() -> list[str]:
    """The subjects with measurements."""
    return [name for name in SUBJECTS if (FOLDER / f"{name}.jsonl.gz").exists()]


# Measuring -------------------------------------------------------------------------------------------


def measure(name: str, work: Path, python: str = "") -> None:
    """Runs a subject's cases and writes its file. `python` may hold the release already."""
    subject = SUBJECTS[name]
    work.mkdir(parents=True, exist_ok=True)
    python = python or _toolchain(subject, work)
    (work / name).mkdir(exist_ok=True)
    reported = _drawn(_migrated(subject.source, work), subject.sample)
    outcomes = _outcomes(subject, [one["id"] for one in reported], python, work / name)
    FOLDER.mkdir(exist_ok=True)
    header = {
        "subject": name,
        "release": subject.release,
        "library": reported[0]["library"],
        "cases": len(reported),
    }
    lines = [header, *(_line(one, outcomes[one["id"]]) for one in reported if one["id"] in outcomes)]
    data = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode()
    (FOLDER / f"{name}.jsonl.gz").write_bytes(gzip.compress(data, mtime=0))
    print(f"{name}: {len(lines) - 1} cases", file=sys.stderr)
    if subject.python:
        _measure_coverage(name, [one["id"] for one in reported], python, work)


def _measure_coverage(name: str, ids: Sequence[str], python: str, work: Path) -> None:
    """The lines of the release's frontend that each case covers, measured in its venv."""
    Installer(work).install(Path(python), ("coverage>=7,<8",))
    catalog, subject = work / name / "cases.jsonl", SUBJECTS[name]
    catalog.write_text("".join(json.dumps({"id": case_id}) + "\n" for case_id in ids), encoding="utf-8")
    command = [
        *(python, "-m", "fuzzing.prioritize.coverage_measurement", "--backend", subject.backend),
        *("--package", subject.python, "--corpus", str(work / "corpus"), "--catalog", str(catalog)),
    ]
    reported = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    coverage_file(name).write_bytes(gzip.compress(_shortened(reported), mtime=0))


def _shortened(reported: bytes) -> bytes:
    """The same with paths relative to the environment."""
    return re.sub(rb'"[^"]*/site-packages/', b'"', reported)


def _toolchain(subject: Subject, work: Path) -> str:
    folder = work.absolute() / f"{subject.backend}-{subject.release}-{subject.source}"
    python = folder / "bin" / "python"
    if not python.exists():
        installer = Installer(folder.parent)
        installer.make_venv(folder)
        needed = backends.get(subject.backend).requirements(subject.release)
        installer.install(python, (*needed, *subject.extra))
    return str(python)


def _migrated(source: str, work: Path) -> list[dict[str, Any]]:
    catalog = work / f"{source}.jsonl"
    if not catalog.exists():
        command = [sys.executable, "-m", "fuzzing.migrate", source, "--corpus", str(work / "corpus")]
        partial = catalog.with_suffix(".partial")
        with open(partial, "w", encoding="utf-8") as file:
            subprocess.run(command, check=True, stdout=file)
        partial.rename(catalog)
    events = [json.loads(line) for line in catalog.read_text(encoding="utf-8").splitlines()]
    library = f"{events[-1]['library']} {events[-1]['version']}"
    cases = {
        event["id"]: event | {"library": library} for event in reversed(events) if event["event"] == "case"
    }
    return list(reversed(cases.values()))


def _drawn(reported: list[dict[str, Any]], count: int | None) -> list[dict[str, Any]]:
    if count is None or count >= len(reported):
        return reported
    kept = sorted(random.Random(SEED).sample(range(len(reported)), count))
    return [reported[catalog_path] for catalog_path in kept]


def _outcomes(subject: Subject, ids: Sequence[str], python: str, folder: Path) -> dict[str, Outcome]:
    """The outcome of every case; failures count only if they repeat in another process."""
    shard = {
        "corpus": str((folder.parent / "corpus").absolute()), "backend": subject.backend, "toolchain": "old",
        "python": python, "options": dict(subject.options), "limits": {},
    }  # fmt: skip
    first = _run(shard | {"cases": list(ids)}, folder / "first")
    bad = [case for case, outcome in first.items() if outcome.verdict.is_failure]
    again = _run(shard | {"cases": bad}, folder / "again")
    unsteady = [case for case in bad if again[case].verdict is not first[case].verdict]
    print(f"{len(bad)} bad outcomes, {len(unsteady)} of them not repeated", file=sys.stderr)
    return {case: again.get(case, outcome) for case, outcome in first.items() if case not in unsteady}


def _run(shard: dict[str, Any], path: Path) -> dict[str, Outcome]:
    """The outcomes of a shard, stored so that an interrupted measurement resumes."""
    events = path.with_suffix(".jsonl")
    if not events.exists():
        path.with_suffix(".json").write_text(json.dumps(shard), encoding="utf-8")
        command = [sys.executable, "-m", "fuzzing.execute", str(path.with_suffix(".json"))]
        with open(path.with_suffix(".partial"), "w", encoding="utf-8") as file:
            _copy(command, file, len(shard["cases"]))
        path.with_suffix(".partial").rename(events)
    reported = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    found = [Outcome.from_json(event["outcome"]) for event in reported if event["event"] == "outcome"]
    return {outcome.case: outcome for outcome in found}


def _copy(command: Sequence[str], file: TextIO, count: int) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout):
            file.write(line)
            if number % 200 == 0:
                print(f"{number} of {count} cases run", file=sys.stderr)
    if process.returncode:
        raise SystemExit(f"the shard failed: {file.name}")


def _line(reported: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    operator = reported["instance"]["operator"]
    bad = outcome.verdict.is_failure
    return {
        "instance": reported["instance"],
        "verdict": outcome.verdict.value,
        "seconds": round(sum(outcome.durations.values()), 4),
        "converter": operator if bad else None,
        "signature": crash_signature(outcome, operator) if bad else None,
    }


_BRACKETED = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\{[^{}]*\}|<[^<>]*>")


def crash_signature(outcome: Outcome, operator: str) -> str:
    """1.7.2 of OPERA: exception type, file, last line of the message with bracketed text removed.

    Wrong results and hangs have no message and go by operator.
    """
    seen = outcome.evidence
    if outcome.verdict is not Verdict.CRASH or not seen.error:
        return f"{outcome.verdict.value} {seen.signal} {operator}"
    lines = seen.message.strip().splitlines() or [""]
    text = lines[-1]
    while (shorter := _BRACKETED.sub("", text)) != text:
        text = shorter
    return f"{seen.error} {parse_message(seen.message).frame} {' '.join(text.split())}"
