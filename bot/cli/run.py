"""Run a campaign on a compiler that is installed here, or on releases of it."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape

from bot.campaigns.manual import run_once_through
from bot.cli._options import check_device
from bot.cli._watch import Watch
from bot.cli.exits import Exit
from bot.compose import campaign_services
from bot.config import RepositoryConfig
from bot.config.units import parse_duration
from bot.errors import UsageError
from bot.logs import configure
from bot.reports.campaign import CampaignReports
from bot.settings import Settings, load_settings
from bot.store import Database
from bot.toolchains.existing import existing_spec
from fuzzing import backends

_SHOWN = 15  # groups listed on the terminal; the report has them all


@dataclass(frozen=True)
class _Pins:
    """Stands where a target's repository would: a "commit" is a release, and pins itself."""

    package: str

    def read(self, _target: str, sha: str, path: str) -> bytes | None:
        return f"{self.package}=={sha}\n".encode() if path == "requirements.txt" else None

    def default_branch(self, _target: str) -> str:
        return "main"


@click.command()
@click.option("--backend", required=True, help="Compiler to test.")
@click.option(
    "--source",
    "sources",
    multiple=True,
    default=["onnx-node-tests"],
    show_default=True,
    help="Where cases come from; may be repeated.",
)
@click.option("--budget", default="5m", show_default=True, help="Time for running cases, such as 90s or 5m.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for the reports.",
)
@click.option(
    "--python", default=sys.executable, help="Interpreter that holds the compiler. [default: Assay's]"
)
@click.option("--release", default="", help="Test this release instead, in an environment made for it.")
@click.option("--base", default="", help="Compare with this release; needs --release.")
@click.option("--device", default="CPU", show_default=True, help="Device to compile for.")
@click.option(
    "--repeats",
    default=3,
    show_default=True,
    type=click.IntRange(1, 20),
    help="Fresh processes behind each accusation.",
)
@click.option("--workers", type=click.IntRange(1), help="Cases at a time. [default: one for each core]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    backend: str,
    sources: tuple[str, ...],
    budget: str,
    report: Path,
    python: str,
    release: str,
    base: str,
    device: str,
    repeats: int,
    workers: int | None,
    as_json: bool,
) -> Exit:
    """Run a campaign on a compiler that is installed here, or on releases of it.

    Writes report.html, report.md, report.json and a reproducer for each failure. Exit code 1 if the
    compiler fails a case (with --base: if a case that passes there fails here).
    """
    if base and not release:
        raise UsageError("--base names a release to compare with, so --release must name the other one")
    settings = load_settings(workers=workers)
    configure("console", "error")
    config = _config(backend, list(sources), budget, device, repeats)
    _make_folder(report)
    with Watch() as watch:
        told = _campaign(settings, config, report, python, release, base, watch)
    if as_json:
        click.echo(json.dumps(told | {"report": str(report)}))
    else:
        _print(told, report)
    speaks = ("regression",) if base else ("regression", "unjudged")
    return Exit.FOUND if any(group["standing"] in speaks for group in told["groups"]) else Exit.OK


def _config(backend: str, sources: list[str], budget: str, device: str, repeats: int) -> RepositoryConfig:
    kind = backends.get(backend)
    if kind.reference:
        raise UsageError(f"{backend} is the reference, not a compiler: {', '.join(backends.compilers())}")
    try:
        seconds = parse_duration(budget)
    except ValueError as error:
        raise UsageError(f"--budget {budget}: {error}") from None
    check_device(backend, device)
    try:
        return RepositoryConfig(
            version=1, backend=backend, sources=sources, budget=seconds, device=device, repeats=repeats
        )
    except ValidationError as error:
        given = {"sources": f"--source {' '.join(sources)}", "budget": f"--budget {budget}"}
        problems = []
        for item in error.errors(include_url=False):
            name = str(item["loc"][0])
            problems.append(f"{given.get(name, name)}: {item.get('ctx', {}).get('error', item['msg'])}")
        raise UsageError("; ".join(problems)) from None


def _make_folder(report: Path) -> None:
    """Makes the folder for the reports now: an hour of testing must not end in nothing."""
    try:
        report.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=report):
            pass
    except OSError as error:
        raise UsageError(f"--report {report}: cannot be written to: {error.strerror}") from None


def _campaign(
    settings: Settings,
    config: RepositoryConfig,
    report: Path,
    python: str,
    release: str,
    base: str,
    watch: Watch,
) -> dict[str, Any]:
    """Runs it on a database of its own and returns what report.json says."""
    changes: dict[str, Any] = {
        "repositories": _Pins(backends.get(config.backend).package),
        "reports": CampaignReports(settings.data_dir / "corpus", lambda _campaign: report),
    }
    if not release:
        spec = existing_spec(config.backend, python)
        changes["resolve"] = lambda _config, _read: spec
    services = campaign_services(settings, **changes)
    with tempfile.TemporaryDirectory(prefix="assay-run-") as folder:
        database = Database(f"sqlite:///{folder}/run.db")
        database.migrate()
        try:
            run_once_through(
                database,
                settings,
                services,
                config,
                target=config.backend,
                head=release or "installed",
                base=base,
                on_progress=watch,
            )
        finally:
            database.close()
    told: dict[str, Any] = json.loads((report / "report.json").read_bytes())
    return told


def _print(told: dict[str, Any], report: Path) -> None:
    console = Console(soft_wrap=True, highlight=False)
    counts = ", ".join(f"{cases} {verdict}" for verdict, cases in told["verdicts"]["head"].items())
    label = told["toolchains"]["head"]["label"]
    console.print(
        f"[bold]{escape(label)}[/]: {told['cases']['run']} of {told['cases']['planned']} cases ran: {counts}"
    )
    groups = [group for group in told["groups"] if group["standing"] != "fixed"]
    for group in groups[:_SHOWN]:
        console.print(f"  {group['cases']:4}  {group['standing']:15} {escape(group['title'])}")
    if len(groups) > _SHOWN:
        console.print(f"        and {len(groups) - _SHOWN} more kinds of failure")
    console.print(f"{escape(told['headline'])}")
    console.print(f"report: {report / 'report.html'}  reproducers: {report / 'reproducers'}")
