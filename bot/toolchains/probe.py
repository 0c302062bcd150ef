"""Asking an interpreter what it holds, by starting it once."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bot import processes
from bot.errors import ProvisionError

PROBE_TIMEOUT_S = 180.0  # a compiler's first import on a cold disk, bytecode and all

_MARK = "assay-probe:"
# Runs on interpreters down to Python 3.8. Only the compiler itself is imported: once, so that a broken one
# is found before any case is charged with it, and so that its bytecode is there for the workers.
_CODE = f"""
import json, platform, sys
from importlib import metadata
found = {{}}
for item in metadata.distributions():
    name = item.metadata["Name"]
    if name:
        found.setdefault(name.lower().replace("_", "-"), item.version)
for name in sys.argv[1:]:
    __import__(name)
answer = {{"python": platform.python_version(), "packages": found}}
sys.stdout.flush()
print("\\n{_MARK}" + json.dumps(answer), flush=True)
"""


@dataclass(frozen=True)
class Found:
    """What an interpreter holds: its version, and distribution → version."""

    python: str
    packages: dict[str, str]


def probe(python: Path, import_name: str) -> Found:
    """What the interpreter `python` holds, once the compiler has been imported there.

    Raises ProvisionError if it cannot be started or the import fails.
    """
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as home:
        env = processes.scrubbed(*processes.PLAIN, extra={"HOME": home})
        command = [str(python), "-I", "-c", _CODE, import_name]
        try:
            done = processes.run(command, env=env, cwd=Path(home), timeout=PROBE_TIMEOUT_S, tether=True)
        except subprocess.TimeoutExpired:
            raise ProvisionError(
                f"importing {import_name} with {python} did not end within {PROBE_TIMEOUT_S:g} s"
            ) from None
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(_MARK):
            answer = json.loads(line.removeprefix(_MARK))
            return Found(answer["python"], dict(sorted(answer["packages"].items())))
    ending = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
    raise ProvisionError(
        f"{python} cannot import {import_name} ({ending}):\n{processes.tail(done.stderr, lines=2)}"
    )
