"""Record the library calls of any command as cases."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.markup import escape

from bot.campaigns.plan.catalog import SourceCatalog
from bot.campaigns.plan.collection import Collector, missing
from bot.cli.common.console import stdout
from bot.cli.common.options import split_names
from bot.cli.common.progress import StatusLine
from bot.cli.exits import Exit
from bot.config import names
from bot.errors import InfrastructureError, UsageError
from bot.reports.plan_summary import describe_source_state
from bot.reports.templates import pluralize, seconds
from bot.runners import run_tool
from bot.settings import load_settings
from bot.terminal import echo

_SHOWN = 8  # reasons and operators listed on the terminal; --json has all reasons


@dataclass
class _Collection:
    """The result of a collection, as printed by `assay collect --json`.

    seconds   `command`, `recording` within it, `replay` after it
    overhead  time of the command divided by its time without recording
    """

    library: str
    corpus: str
    catalog: str
    cases: int = 0
    new: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    skipped: Mapping[str, int] = field(default_factory=dict)
    command_exit: int = 0
    processes: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def overhead(self) -> float | None:
        command = self.seconds.get("command", 0.0)
        own = command - self.seconds.get("recording", 0.0)
        return round(command / own, 3) if own > 0 else None

    def to_json(self) -> dict[str, Any]:
        counts = {"operators": len(self.operators), "by_operator": dict(self.operators.most_common())}
        return asdict(self) | counts | {"overhead": self.overhead}


@click.command()
@click.option("--library", help="Library whose calls are recorded: torch, keras, onnx.")
@click.option("--source", "sources", multiple=True, help="Collect these sources completely instead.")
@click.option(
    "--corpus",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the cases. [default: collected/LIBRARY-NAME in the data folder; with --source, "
    "collected/NAME, or the corpus of `assay run` without a name]",
)
@click.option("--name", default="", help="Name of the collection. [default: from command and folder]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND…")
def command(
    library: str | None,
    sources: tuple[str, ...],
    corpus: Path | None,
    name: str,
    as_json: bool,
    arguments: tuple[str, ...],
) -> Exit:
    """Record the library calls of any command as cases.

    Records all Python processes of the command, whether its tests pass or not. Then replays each distinct
    call and keeps those that the library runs; `assay run --cases` runs them. With --source, collects a
    library's own tests as `assay run` does, without a time limit. Exit code 1 if nothing was collected.
    """
    if sources:
        if library or arguments:
            raise UsageError("--source and --library exclude each other; keep one")
        return _sources(split_names(sources), corpus, name, as_json)
    if not library or not arguments:
        raise UsageError(
            "give a library and a command: assay collect --library torch -- python -m pytest tests/"
        )
    try:
        names.check_library_name(library)
    except ValueError as error:
        raise UsageError(f"--library {library}: {error}") from None
    called = name or hashlib.sha256("\0".join([str(Path.cwd()), *arguments]).encode()).hexdigest()[:12]
    folder = (corpus or load_settings().data_dir / "collected" / f"{library}-{called}").absolute()
    found = _record(library, folder, f"collected-{library}-{called}", arguments, as_json)
    if as_json:
        echo(json.dumps(found.to_json()))
    else:
        _show(found)
    return Exit.OK if found.cases else Exit.FOUND


def _record(library: str, folder: Path, source: str, arguments: tuple[str, ...], quiet: bool) -> _Collection:
    """Records the command; writes the catalog once all cases are stored."""
    catalog = folder / "catalogs" / f"{source}.jsonl"
    catalog.parent.mkdir(parents=True, exist_ok=True)
    part = catalog.with_name(f".{catalog.name}.{os.getpid()}")
    found = _Collection(library, str(folder), str(catalog))
    words = ["--library", library, "--corpus", str(folder), "--cwd", str(Path.cwd()), "--source", source]
    ended = False
    try:
        with open(part, "w", encoding="utf-8") as file:

            def take(event: dict[str, Any]) -> None:
                nonlocal ended
                kind = event.pop("event", "")
                if kind == "case":
                    found.operators[str(event["operator"])] += 1
                    found.cases += 1
                elif kind == "end":
                    ended = True
                    _end(found, event)
                    version = f"{event.get('library', library)} {event.get('version', '')}".strip()
                    event = {"library": version, "skipped": event.get("skipped", {})}
                if kind in ("case", "end"):
                    file.write(json.dumps(event, ensure_ascii=False) + "\n")

            # The user's own command gets the user's environment and prints to the terminal.
            run_tool(
                "fuzzing.migrate.recorders",
                [*words, "--", *arguments],
                take,
                env=dict(os.environ),
                echo=None if quiet else sys.stderr.buffer,
            )
        if not ended:
            raise InfrastructureError("the recording ended without an end event; see the lines above")
        part.replace(catalog)
    finally:
        part.unlink(missing_ok=True)
    return found


def _end(found: _Collection, event: Mapping[str, Any]) -> None:
    found.new = int(event["new"])
    found.skipped = dict(event["skipped"])
    found.command_exit = int(event.get("command_exit", 0))
    found.processes = int(event.get("processes", 0))
    found.seconds = {str(name): float(value) for name, value in event.get("seconds", {}).items()}


def _show(found: _Collection) -> None:
    console = stdout()
    console.print(
        f"[bold]{pluralize(found.cases, 'case')}[/] of {pluralize(len(found.operators), 'operator')}, "
        f"{found.new:,} of them new; the command exited with {found.command_exit}"
    )
    times = ", ".join(f"{name} {seconds(value)}" for name, value in found.seconds.items())
    if times:
        cost = (
            f"; the command took {found.overhead:.2f} times as long as without recording"
            if found.overhead
            else ""
        )
        console.print(f"  {times}{cost}")
    most = ", ".join(f"{name} {count}" for name, count in found.operators.most_common(_SHOWN))
    if most:
        console.print(escape(f"  most: {most}"))
    for reason, count in Counter(found.skipped).most_common(_SHOWN):
        console.print(escape(f"  {count:5} not converted: {reason}"))
    if found.cases:
        console.print(escape(f"run them with: assay run --backend BACKEND --cases {found.corpus}"))
    elif not found.processes:
        console.print(escape(f"the command did not import {found.library}"))


def _sources(wanted: list[str], folder: Path | None, name: str, as_json: bool) -> Exit:
    """Collects sources completely, by default into the corpus that `assay run` uses."""
    for source in wanted:
        if source not in names.sources():
            raise UsageError(
                f"--source {source}: not a case source; {names.suggestion(source, names.sources())}"
            )
    settings = load_settings()
    kept = settings.data_dir / "collected" / name if name else settings.data_dir / "corpus"
    corpus = (folder or kept).absolute()
    cases = [SourceCatalog(corpus, source) for source in wanted]
    collector = Collector(corpus, run_tool, settings.workers, monotonic)
    with StatusLine() as line:
        collector.collect(
            missing(cases), None, lambda event: line.show(str(event["note"])), threading.Event()
        )
    accounts = collector.accounts(cases)
    if as_json:
        echo(json.dumps({"sources": [account.to_json() for account in accounts]}))
    else:
        for one in accounts:
            skipped, state = sum(one.skipped.values()), describe_source_state(one)
            echo(
                f"{one.source}: {pluralize(one.cases, 'case')} from {one.library}, "
                f"{pluralize(skipped, 'test')} not converted{'; ' * bool(state)}{state}"
            )
            for reason, count in Counter(one.skipped).most_common(_SHOWN):
                echo(f"  {count:5}  {reason}")
    return Exit.OK if all(one.cases and not one.failed for one in accounts) else Exit.FOUND
