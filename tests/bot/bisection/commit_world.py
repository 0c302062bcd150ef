"""Bisections of commits whose toolchains are really made, and whose case is one addition in each."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bot.bisection.commit_plan import CommitQuestion
from bot.bisection.commit_range import CommitQuery, CommitRange, RevisionHistory
from bot.bisection.commit_search import list_stages, search_commits
from bot.bisection.decision_rule import DecisionRule
from bot.bisection.journal import Journal
from bot.bisection.release_probe import ReleaseProbe, bisect_releases
from bot.bisection.report import result_to_json
from bot.config import RepositoryConfig, ToolchainConfig
from bot.runners.protocol import OnEvent
from fuzzing.execute.shard import Shard
from tests.bot.bisection.test_release_probe import PASS, RAISES, WRONG, outcome, query

CODE = "tinyc/__init__.py"
#: Makes a wheel of the package `tinyc`, as a build backend does; code that does not compile makes none.
PACK = """\
import pathlib, shutil, zipfile
code = pathlib.Path("tinyc/__init__.py").read_text()
compile(code, "tinyc/__init__.py", "exec")
info = "tinyc-1.0.dist-info"
shutil.rmtree("dist", ignore_errors=True)
pathlib.Path("dist").mkdir()
with zipfile.ZipFile("dist/tinyc-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tinyc/__init__.py", code)
    wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: tinyc\\nVersion: 1.0\\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(f"{info}/RECORD", "")
"""
BUILD = {"commands": ["python pack.py"], "sources": ["tinyc", "pack.py"]}


class Adder:
    """A runner that adds 1 and 2 in the toolchain of a shard."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, shard: Shard, on_event: OnEvent, _stop: threading.Event) -> None:
        command = [shard.python, "-c", "import tinyc; print(tinyc.add(1, 2))"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        fate = RAISES if done.returncode else PASS if done.stdout.strip() == "3" else WRONG
        for repeat in range(shard.repeats):
            self.runs += 1
            on_event({"event": "outcome", "repeat": repeat, "outcome": outcome(fate, shard).to_json()})


@dataclass
class Commits:
    """The commits of a repository; `steps` is what was told on the way."""

    repository: RevisionHistory
    data: Path
    adder: Adder = field(default_factory=Adder)
    steps: list[str] = field(default_factory=list)

    def search(self, commits: str, *, fixed_by: bool = False, **toolchain: Any) -> dict[str, Any]:
        """The answer for GOOD..BAD by a configuration's `toolchain`."""
        config = RepositoryConfig(
            version=1, backend="tiny", toolchain=ToolchainConfig.model_validate(toolchain)
        )
        between = CommitRange.parse(commits, self.repository)
        asked = replace(query(fixed_by=fixed_by), backend="tiny", package="tinyc")
        stages = list_stages(self.repository, between, config, self.data)
        question = CommitQuestion(self.repository, asked, self._bisect, self.steps.append)
        return search_commits(stages, between, question)

    def _bisect(self, asked: CommitQuery, between: CommitRange, shas: Sequence[str]) -> dict[str, Any]:
        begin = time.monotonic()
        ordered = shas[::-1] if asked.fixed_by else shas
        journal = Journal(self.data / "bisections", asked.identity)
        probe = ReleaseProbe(asked, ordered, self.data, journal, self.adder, self.steps.append)
        answer, probe = bisect_releases(probe, len(ordered), DecisionRule())
        return result_to_json(asked, between, ordered, answer, probe, time.monotonic() - begin)
