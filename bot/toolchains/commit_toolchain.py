"""Toolchains are checked before they count as made, and the failures of the checks are kept.

A folder of the cache holds the environment and a record, or in its place why the commit has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.atomic_folders import make_once
from bot.errors import (
    BrokenSourcesError,
    BuildFailedError,
    CheckUnfinishedError,
    ProvisionError,
    RunnerError,
)
from bot.toolchains import probe_script
from bot.toolchains.probe import ProbeResult, compile_bytecode, probe
from bot.toolchains.registry import OnProgress, ReadyToolchain, ToolchainSpec
from bot.toolchains.smoke import smoke_test
from bot.toolchains.uses import hold
from fuzzing import backends
from fuzzing.file_trees import remove_tree

RECORD = "assay-toolchain.json"  # how it was made; written last
#: In place of a toolchain: why there is none. The name is the class of the error.
FAILURES: dict[str, type[ProvisionError]] = {
    "assay-failure.txt": BrokenSourcesError,
    "assay-build-failure.txt": BuildFailedError,
}
_ROOTS_PATTERN = r"lib/python3[^/]*/site-packages"
_TRACEBACK_LINES = 40
#: Frames of `importlib` and of our own script, with the line of source below the latter's.
_IMPORT_FRAMES = (
    r'^  File "(?:<frozen importlib|[^"\n]*/importlib/__init__\.py"'
    rf'|{re.escape(probe_script.__file__)}").*\n(?:    .*\n)*'
)

#: Fills an empty folder with an environment; returns what a stranger needs to get the same, with the
#: "versions" of its packages where they are known.
Fill = Callable[[Path], dict[str, Any]]


def make_checked(spec: ToolchainSpec, data_dir: Path, progress: OnProgress, fill: Fill) -> Path:
    """The folder of a toolchain: filled and checked now, or found from before.

    Raises BrokenSourcesError, BuildFailedError: the commit's own fault, found again without a new attempt;
    and CheckUnfinishedError and what `fill` raises, of which nothing stays.
    """

    def make(partial: Path) -> dict[str, Any]:
        record = _record(spec) | fill(partial)
        return record | {"versions": _check(partial, spec, progress, record.get("versions"))}

    folder, made = make_recorded(spec, data_dir, make)
    progress(f"{spec.label}: {'made' if made else 'made before'}")
    return folder


def make_recorded(spec: ToolchainSpec, data_dir: Path, make: Fill) -> tuple[Path, bool]:
    """The folder of a toolchain, and whether it was made now; `make` fills it and returns its record.

    Raises as `make_checked`.
    """
    folder = (data_dir / "toolchains").absolute() / spec.digest
    folder.parent.mkdir(parents=True, exist_ok=True)
    hold(folder)

    def fill(partial: Path) -> None:
        try:
            record = make(partial)
        except (BrokenSourcesError, BuildFailedError) as error:
            remove_tree(partial)
            partial.mkdir()
            name = next(name for name, kind in FAILURES.items() if isinstance(error, kind))
            (partial / name).write_text(str(error), encoding="utf-8")
            record = _record(spec)
        (partial / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")

    made = make_once(folder, _usable, fill)
    for name, kind in FAILURES.items():
        if (folder / name).is_file():
            raise kind((folder / name).read_text(encoding="utf-8"))
    return folder, made


def ready(spec: ToolchainSpec, folder: Path, *direct: str) -> ReadyToolchain:
    """The toolchain in a folder; `direct` are what pip installs for packages that no index has."""
    versions: dict[str, str] = json.loads((folder / RECORD).read_text(encoding="utf-8"))["versions"]
    wanted = map(_name, (*spec.requirements, *backends.get(spec.backend).packages))
    covered = {_name(one) for one in direct}
    pins = [
        f"{name}=={versions[name]}"
        for name in dict.fromkeys(wanted)
        if name in versions and name not in covered
    ]
    python = str(folder / "bin" / "python")
    return ReadyToolchain(spec, spec.digest, python, versions, (*direct, *pins))


def _record(spec: ToolchainSpec) -> dict[str, Any]:
    """How a stranger gets the same."""
    return {
        "label": spec.label,
        "requirements": list(spec.requirements),
        "overlay": [one.path for one in spec.overlay],
        "origin": dict(spec.origin),
        "choice": spec.choice,
        "commit": spec.commit.sha if spec.commit else "",
    }


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _usable(folder: Path) -> bool:
    if any((folder / name).is_file() for name in FAILURES):
        return True
    # The interpreter is a link to the one the environment was made from, which an upgrade may have removed.
    return (folder / RECORD).is_file() and (folder / "bin" / "python").exists()


def _check(
    folder: Path, spec: ToolchainSpec, progress: OnProgress, versions: dict[str, str] | None
) -> dict[str, str]:
    """The versions of what is installed; raises BrokenSourcesError if the compiler cannot be imported, or
    fails the smoke test.

    Where the versions are known, the smoke test is the only import that a working compiler costs.
    """
    if versions is not None:
        try:
            check_smoke(folder, spec, progress)
        except (BrokenSourcesError, RunnerError):  # no case runs on what cannot be imported
            _import_once(folder, spec, progress)  # its traceback says more
            raise
        return versions
    found = _import_once(folder, spec, progress)
    compile_bytecode(folder, found.sources)
    check_smoke(folder, spec, progress)
    return {"python": found.python, **found.packages}


def _import_once(folder: Path, spec: ToolchainSpec, progress: OnProgress) -> ProbeResult:
    """What the environment holds; raises BrokenSourcesError if its compiler cannot be imported, and
    CheckUnfinishedError as `probe`.
    """
    progress(f"{spec.label}: importing it once")
    python, adapter = folder / "bin" / "python", backends.get(spec.backend)
    try:
        return probe(python, adapter.import_name, environment=adapter.environment, lines=_TRACEBACK_LINES)
    except CheckUnfinishedError:
        raise  # a busy machine must not make it a broken commit for good
    except ProvisionError as error:
        why = _public(str(error), folder)
        raise BrokenSourcesError(f"{spec.label}: the compiler cannot be imported:\n{why}") from None


def check_smoke(folder: Path, spec: ToolchainSpec, progress: OnProgress) -> None:
    """Raises BrokenSourcesError if the compiler in an environment fails the smoke test."""
    progress(f"{spec.label}: running the smoke test")
    failure = smoke_test(spec, folder / "bin" / "python")
    if failure:
        raise BrokenSourcesError(f"{spec.label}: {_public(failure, folder)}")


def _public(traceback: str, folder: Path) -> str:
    """A traceback for reports: without folders of this machine and the frames of the import itself."""
    text = re.sub(rf"{re.escape(str(folder))}(/{_ROOTS_PATTERN})?/", "", traceback)
    text = re.sub(_IMPORT_FRAMES, "", text, flags=re.MULTILINE)
    return "\n".join(line for line in text.splitlines() if line.strip(" ^~"))
