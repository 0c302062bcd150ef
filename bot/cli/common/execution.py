"""Running programs of the data plane on cases and an installed compiler."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.cli.common.options import ConfiguredBackend
from bot.errors import InfrastructureError
from bot.runners import LocalRunner, run_tool
from bot.toolchains import ReadyToolchain, provision
from bot.toolchains.existing import existing_spec
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome

Event = dict[str, Any]


def find_toolchain(backend: str, python: str) -> ReadyToolchain:
    """The toolchain that holds the compiler; raises ProvisionError."""
    return provision(existing_spec(backend, python), Path(), lambda _line: None)


def build_shard(
    configuration: ConfiguredBackend,
    toolchain: ReadyToolchain,
    corpus: Path,
    cases: Sequence[str],
    *,
    workers: int,
) -> Shard:
    """A shard of cases of a corpus for a toolchain."""
    return Shard(
        corpus=str(corpus.absolute()),
        cases=tuple(cases),
        backend=configuration.name,
        toolchain=toolchain.digest,
        python=toolchain.python,
        device=configuration.device,
        options=configuration.options,
        profile=configuration.profile,
        workers=workers,
    )


def run_shard(shard: Shard) -> list[Outcome]:
    """The outcomes of a shard that runs here, in the order they came."""
    outcomes: list[Outcome] = []

    def take(event: Event) -> None:
        if event["event"] == "outcome":
            outcomes.append(Outcome.from_json(event["outcome"]))

    LocalRunner(1).run(shard, take, threading.Event())
    return outcomes


def run_tool_on_shard(
    shard: Shard, module: str, arguments: Sequence[str], take: Callable[[Event], None]
) -> None:
    """Runs `python -m MODULE SHARD.JSON ARGUMENTS…`, handing its events on; raises as `run_tool`."""
    _run_with_question(module, shard.to_json(), arguments, take)


def compare_backends(corpus: Path, case: str, contenders: Sequence[Mapping[str, Any]]) -> Event:
    """The table of `fuzzing.execute.compiler_comparison`: one row for each contender."""
    tables: list[Event] = []
    question = {"corpus": str(corpus.absolute()), "case": case, "backends": list(contenders)}
    _run_with_question("fuzzing.execute.compiler_comparison", question, (), tables.append)
    if len(tables) != 1:
        raise InfrastructureError("the comparison ended without a result; see its log above")
    return tables[0]


def _run_with_question(
    module: str, question: Mapping[str, Any], arguments: Sequence[str], take: Callable[[Event], None]
) -> None:
    """Runs a program that reads its input from a JSON file."""
    with tempfile.TemporaryDirectory(prefix="assay-ask-") as scratch:
        file = Path(scratch) / "question.json"
        file.write_text(json.dumps(question), encoding="utf-8")
        run_tool(module, [str(file), *arguments], take)
