"""The operators a compiler does not support, found by running models of one node each in its worker.

Results are cached in the user's cache folder by compiler release, opset and specification digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

import fuzzing.graph.operators
from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.entry_point import note
from fuzzing.errors import ToolchainError, UsageError
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.generate import case_builder
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import operators
from fuzzing.oracles.decision import OracleInput
from fuzzing.oracles.unsupported import unsupported
from fuzzing.rng import derive_seed

#: Nodes of each operator and element type that are tried.
TRIALS = 4
_PROGRESS_EVERY = 200  # trials; a second to a minute, by compiler

#: Operator → element types of its primary input that the compiler refuses.
UnsupportedTypes = Mapping[str, tuple[str, ...]]
#: Element type → operator → how many of its trials were refused.
RefusalCounts = dict[str, dict[str, int]]


def find_unsupported(backend: str, opset: int, dtypes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What the compiler refuses in more than half of its trials, for these primary input types.

    An operator refused less often stays; its refused nodes are reported as unsupported at run time. Raises
    UsageError for a backend that takes no ONNX models, ToolchainError where it cannot be started.
    """
    if "OnnxModel" not in backends.get(backend).kinds:
        raise UsageError(
            f"--backend {backend}: takes no ONNX models, so that nothing need be left out for it"
        )
    path = _path(backend, opset)
    refusals = _load(path)
    wanted = tuple(dict.fromkeys(dtypes))
    missing = [dtype for dtype in wanted if dtype not in refusals]
    if missing:
        refusals |= _query_backend(backend, opset, missing)
        _store(path, refusals)
    found: dict[str, tuple[str, ...]] = {}
    for dtype in wanted:
        for name, refused in sorted(refusals[dtype].items()):
            if 2 * refused > TRIALS:
                found[name] = (*found.get(name, ()), dtype)
    return found


def _query_backend(backend: str, opset: int, dtypes: Iterable[str]) -> RefusalCounts:
    note(f"generate: asking {backend} once which operators it supports at opset {opset}")
    found: RefusalCounts = {dtype: Counter() for dtype in dtypes}
    kind = backends.get(backend)
    supervisor: Supervisor[tuple[str, str, TestCase]] = Supervisor(WorkerCommand(sys.executable, backend))
    runs = supervisor.run(((dtype, name, case), case) for dtype, name, case in _trials(opset, found))
    for count, ((dtype, name, case), execution) in enumerate(runs, 1):
        if unsupported(OracleInput(case, execution, kind, "default")) is not None:
            found[dtype][name] = found[dtype].get(name, 0) + 1
        if count % _PROGRESS_EVERY == 0:
            note(f"generate: {backend} answered {count} requests")
    return found


def _trials(opset: int, dtypes: Iterable[str]) -> Iterator[tuple[str, str, TestCase]]:
    origin = case_builder.CaseOrigin("support", "")
    for dtype in dtypes:
        for name in operators.specifications(opset):
            try:
                solver = Solver(
                    GeneratorSettings(
                        nodes=(1, 1), opset=opset, operators=(name,), dtypes=(dtype,), picking_rate=0.0
                    )
                )
            except UsageError:  # it takes no such element type
                continue
            for number in range(TRIALS):
                seed = derive_seed(number, name, dtype)
                yield (
                    dtype,
                    name,
                    case_builder.build_case(solver.generate(seed), seed, origin, f"{name}/{number}"),
                )


def _path(backend: str, opset: int) -> Path:
    kind = backends.get(backend)
    try:
        release = metadata.version(kind.package)
    except metadata.PackageNotFoundError:
        raise ToolchainError(
            f"{backend} is not installed here: pip install {kind.package}, or leave out --backend"
        ) from None
    return (
        user_cache_path("assay") / "support" / f"{kind.name}-{release}-{opset}-{_specification_digest()}.json"
    )


def _specification_digest() -> str:
    digest = hashlib.sha256(str(TRIALS).encode())
    for folder in sorted(fuzzing.graph.operators.__path__):
        for path in sorted(Path(folder).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _load(path: Path) -> RefusalCounts:
    try:
        refusals = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):  # a full disk may have left half of it
        return {}
    return refusals if isinstance(refusals, dict) else {}


def _store(path: Path, refusals: RefusalCounts) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(refusals))
        temporary.replace(path)
    except OSError as error:  # the answers are valid; the next run asks again
        note(f"generate: cannot store the answers in {path}: {error.strerror}")
