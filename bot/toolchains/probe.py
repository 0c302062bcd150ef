"""Reading what an interpreter holds, by starting it once behind the walls."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from bot import processes
from bot.errors import CheckUnfinishedError, ProvisionError
from bot.toolchains import probe_script
from fuzzing.execute.sandbox import launcher
from fuzzing.execute.sandbox.launch import sandboxed_command

_COMPILE_TIMEOUT_S = 300.0
PROBE_TIMEOUT_S = 180.0  # a compiler's first import on a cold disk, bytecode and all

#: Exit statuses of a process that SIGKILL ended, without and with the sandbox (`launcher`) around it.
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
_MAX_OUTPUT = 32 << 20  # bytes; the paths of 100,000 sources are 10 MiB
_Word = Annotated[str, StringConstraints(max_length=200)]


class ProbeResult(BaseModel):
    """What an interpreter holds: its version, and distribution → version; the toolchain says it.

    content  digest of everything installed there, file by file; "" where it was not asked for
    sources  paths of the Python files that the import loaded
    """

    model_config = ConfigDict(frozen=True, strict=True)

    python: _Word
    packages: dict[_Word, _Word]
    content: _Word = ""
    sources: tuple[Annotated[str, StringConstraints(max_length=4096)], ...] = ()


def probe(
    python: Path,
    import_name: str,
    *,
    environment: Mapping[str, str] | None = None,
    extra_modules: Sequence[str] | None = None,
    lines: int = 2,
) -> ProbeResult:
    """What the interpreter `python` holds, after it imported the compiler, behind the strongest walls there
    are.

    `environment` has the variables that a worker of the compiler needs (`Backend.environment`).

    With `extra_modules`, names of modules that matter too, also a digest of every file; see
    `probe_script.content`. That takes half a second for 30,000 files; reading them would take a minute.

    Raises ProvisionError with the last `lines` of its output: it cannot be started, or the import fails; and
    CheckUnfinishedError if the import takes longer than PROBE_TIMEOUT_S, is killed as by a machine that has
    no memory left, or lacks a file of ours.
    """
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as home:
        needed = {
            name: value.replace("{scratch}", home).replace("{cache}", home)
            for name, value in (environment or {}).items()
        }
        env = processes.filtered_environment(*processes.SAFE_VARIABLES, extra=needed | {"HOME": home})
        query = {
            "module": import_name,
            "extra_modules": list(extra_modules or ()),
            "content": extra_modules is not None,
        }
        command = sandboxed_command(
            [str(python), "-I", probe_script.__file__, json.dumps(query)],
            writable=[home],
            readable=[probe_script.__file__],
        )
        try:
            done = processes.run(
                command,
                env=env,
                cwd=Path(home),
                timeout=PROBE_TIMEOUT_S,
                kill_with_parent=True,
                max_output=_MAX_OUTPUT,
            )
        except subprocess.TimeoutExpired:
            raise CheckUnfinishedError(
                f"importing {import_name} with {python} did not end within {PROBE_TIMEOUT_S:g} s"
            ) from None
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(probe_script.MARK):
            return parse_answer(line.removeprefix(probe_script.MARK), python)
    ending = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
    if missing := [file for file in (probe_script.__file__, launcher.__file__) if not Path(file).exists()]:
        raise CheckUnfinishedError(
            f"Assay's own file {missing[0]} is gone: it was upgraded or removed while it worked; restart it"
        )
    kind = CheckUnfinishedError if done.returncode in _KILLED else ProvisionError
    raise kind(
        f"{python} cannot import {import_name} ({ending}):\n{processes.tail(done.stderr, lines, 8000)}"
    )


def parse_answer(answer: str, python: Path) -> ProbeResult:
    """The answer of `probe_script`. Raises ProvisionError for anything else."""
    try:
        found = ProbeResult.model_validate_json(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        raise ProvisionError(
            f"{python} gave an answer to the probe that cannot be read: {where}: {first['msg']}; a "
            "package that it imports may have replaced functions of the standard library"
        ) from None
    return found.model_copy(update={"packages": dict(sorted(found.packages.items()))})


def compile_bytecode(folder: Path, sources: Sequence[str]) -> None:
    """Compiles what the import loaded: no worker can write bytecode, and each would compile it anew.

    By our own interpreter, which imports nothing of the toolchain, and behind the walls.
    """
    inside = [path for path in sources if path.startswith(f"{folder}/") and "\n" not in path]
    compiler = [sys.executable, "-I", "-S", "-m", "compileall", "-q", "-i", "-"]
    env = processes.filtered_environment("PATH", "LANG", "LC_*")
    with suppress(subprocess.TimeoutExpired):  # workers then compile what is missing
        processes.run(
            sandboxed_command(compiler, writable=[folder]),
            env=env,
            cwd=folder,
            timeout=_COMPILE_TIMEOUT_S,
            stdin="\n".join(inside).encode("utf-8", "surrogateescape"),
            kill_with_parent=True,
        )
