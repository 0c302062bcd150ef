"""Runs reproducers of reports as a reader would: `python -m tests.sweeps.reproducers FOLDER… [--limit N]`.

Each script under the folders runs in an environment made from its own `pip install` line alone, without
Assay; scripts with one line share one. Prints, for each script, whether it shows its bug: a guarded script by
its exit code and last line, a short one by the exception, message, signal or assertion that its comment
names. Scripts of one text count once, and so do a finding's two scripts.

--instead openvino==2025.4.0 replaces that package's requirement: the bug must not show where the release is
without it.

Exit code 1 if a script does not show its bug, or with --instead shows it.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bot import processes
from bot.errors import ProvisionError
from bot.toolchains.installer import Installer

TIMEOUT_S = 400  # as `bot.runners.reproducer_run.TIMEOUT_S`
_PIP = re.compile(r"^#\s+pip install (?P<packages>[^\n&]+)$", re.MULTILINE)
_RAISES = re.compile(r"^# Raises (?P<name>\w+)(?:: (?P<text>.*?))?…?$", re.MULTILINE)
_DIES = re.compile(r"^# The process dies of (?P<name>SIG\w+) \(", re.MULTILINE)
_TOOL_DIES = re.compile(r"^# The tool dies of (?P<name>SIG\w+) \(\w+\): (?P<error>\w+)\.$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]{3,}")
#: Share of a comment's words that a message has: names of nodes and the numbers beside them differ.
_SAME = 2 / 3
_FRAME = re.compile(r'File "[^"\n]*\.py", line (\d+), in <module>')


class Script(NamedTuple):
    """A reproducer: its file, text, and the requirements of its first line."""

    path: Path
    text: str
    requirements: tuple[str, ...]

    @property
    def guarded(self) -> bool:
        """Whether it tells by its exit code."""
        return "Exit code: 1 the bug shows" in self.text

    @property
    def finding(self) -> str:
        """The name that both scripts of a finding have."""
        return self.path.name.partition(".")[0]


def scripts(folders: Sequence[Path]) -> Iterator[Script]:
    """The scripts below the folders that name what they need, each text once."""
    seen = set()
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.parent.name == "reproducers" and (found := _PIP.search(text)) and text not in seen:
            seen.add(text)
            yield Script(path, text, tuple(shlex.split(found["packages"])))


def environment(root: Path, requirements: tuple[str, ...]) -> Path:
    """The interpreter of an environment with these requirements and nothing else, made if it is missing."""
    name = re.sub(r"[^\w.]+", "_", " ".join(requirements))
    python = root / name / "bin" / "python"
    if not (root / name / "made").exists():
        installer = Installer(root)
        installer.make_venv(root / name)
        installer.install(python, requirements)
        (root / name / "made").touch()
    return python


def show(script: Script, python: Path, timeout_s: float = TIMEOUT_S) -> str:
    """ "shows", or why the script does not show its bug."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "reproducer.py"
        copy.write_text(script.text, encoding="utf-8")
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder}
        try:
            done = processes.run(
                [str(python), copy.name], cwd=Path(folder), env=env, timeout=timeout_s, kill_with_parent=True
            )
        except subprocess.TimeoutExpired:
            return "shows" if "# Does not return" in script.text else "does not end"
    stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if script.guarded:
        last = (stdout.strip().splitlines() or [stderr.strip()[-200:]])[-1]
        marked = done.returncode == 1 and "THE BUG SHOWS" in stdout
        return "shows" if marked else f"exit code {done.returncode}: {last[:200]}"
    return _show_short(script.text, done.returncode, stderr)


def _show_short(text: str, code: int, stderr: str) -> str:
    last = (stderr.strip().splitlines() or [""])[-1][:200]
    if died := _DIES.search(text):
        return "shows" if code == -signal.Signals[died["name"]] else f"exit code {code}: {last}"
    if tool := _TOOL_DIES.search(text):
        number = f"-{signal.Signals[tool['name']].value}"
        told = tool["error"] in stderr and (number in stderr or tool["name"] in stderr)
        return "shows" if code == 1 and told else f"exit code {code}: {last}"
    if raises := _RAISES.search(text):
        if raises["name"] not in stderr:
            return f"exit code {code}, no {raises['name']}: {last}"
        said, wanted = set(_WORD.findall(stderr)), _WORD.findall(raises["text"] or "")
        met = sum(word in said for word in wanted)
        return "shows" if met >= len(wanted) * _SAME else f"another message: {last}"
    if code == 0:
        return "exit code 0"
    frames = _FRAME.findall(stderr)
    statement = ast.parse(text).body[-1]
    compares = frames and statement.lineno <= int(frames[-1]) <= (statement.end_lineno or 0)
    return "shows" if compares and "AssertionError" in stderr else f"fails before it compares: {last}"


def instead(requirements: tuple[str, ...], other: str) -> tuple[str, ...]:
    """The requirements with another release of one package; () if that is not among them."""
    name = other.partition("==")[0]
    found = tuple(other if item.partition("==")[0] == name else item for item in requirements)
    return found if other in found else ()


def main(arguments: Sequence[str]) -> int:
    """The command line of the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.reproducers")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--environments", type=Path, default=Path(tempfile.gettempdir()) / "assay-reproducers"
    )
    parser.add_argument("--limit", type=int, default=1 << 30, help="findings of each compiler")
    parser.add_argument("--only", default="", help="a word of the requirements, such as tinygrad")
    parser.add_argument("--instead", default="", metavar="NAME==VERSION")
    given = parser.parse_args(arguments)
    # So that what a script has started is killed with it, when `timeout` ends this sweep.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    given.environments.mkdir(parents=True, exist_ok=True)
    findings: dict[str, set[str]] = defaultdict(set)
    ended: dict[str, Counter[str]] = defaultdict(Counter)
    for script in scripts(given.folders):
        compiler = script.requirements[0]
        requirements = instead(script.requirements, given.instead) if given.instead else script.requirements
        known = findings[compiler]
        if not requirements or given.only not in " ".join(requirements):
            continue
        if script.finding not in known and len(known) >= given.limit:
            continue
        known.add(script.finding)
        begin = time.monotonic()
        try:
            what = show(script, environment(given.environments, requirements))
        except ProvisionError as error:
            what = f"cannot be installed: {error}"
        ended[compiler]["shows" if what == "shows" else "does not"] += 1
        print(f"{what}  {script.path.name}  {compiler}  {time.monotonic() - begin:.1f} s", flush=True)
    wrong = 0
    for compiler, counts in sorted(ended.items()):
        print(
            f"{compiler}: {counts['shows']} scripts show their bug, {counts['does not']} do not; "
            f"{len(findings[compiler])} findings"
        )
        wrong += counts["shows" if given.instead else "does not"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
