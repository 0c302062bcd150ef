"""Asking an interpreter what it holds, by starting it once."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot import processes
from bot.errors import ProvisionError
from bot.toolchains import probe_script

PROBE_TIMEOUT_S = 180.0  # a compiler's first import on a cold disk, bytecode and all


@dataclass(frozen=True)
class ProbeResult:
    """What an interpreter holds: its version, and distribution → version.

    content  names everything installed there, file by file; "" where it was not asked for
    """

    python: str
    packages: dict[str, str]
    content: str = ""


def probe(python: Path, import_name: str, *, extra_modules: Sequence[str] | None = None) -> ProbeResult:
    """What the interpreter `python` holds, once the compiler has been imported there.

    With `extra_modules`, names of modules that matter too, also a digest of every file; see `inside.content`. It
    takes half a second for 30,000 files; reading them would take a minute.

    Raises ProvisionError if it cannot be started or the import fails.
    """
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as home:
        env = processes.filtered_environment(*processes.SAFE_VARIABLES, extra={"HOME": home})
        asked = {
            "module": import_name,
            "extra_modules": list(extra_modules or ()),
            "content": extra_modules is not None,
        }
        command = [str(python), "-I", probe_script.__file__, json.dumps(asked)]
        try:
            done = processes.run(
                command, env=env, cwd=Path(home), timeout=PROBE_TIMEOUT_S, kill_with_parent=True
            )
        except subprocess.TimeoutExpired:
            raise ProvisionError(
                f"importing {import_name} with {python} did not end within {PROBE_TIMEOUT_S:g} s"
            ) from None
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(probe_script.MARK):
            answer = json.loads(line.removeprefix(probe_script.MARK))
            packages = dict(sorted(answer["packages"].items()))
            return ProbeResult(answer["python"], packages, answer["content"])
    ending = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
    raise ProvisionError(
        f"{python} cannot import {import_name} ({ending}):\n{processes.tail(done.stderr, lines=2)}"
    )
