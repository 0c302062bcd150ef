"""Run an end-to-end demo on two OpenVINO releases: from a signed push to a rendered issue."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from bot import demo
from bot.artifacts import Artifacts
from bot.campaigns.progress import Progress
from bot.cli.common.console import stderr, stdout
from bot.cli.common.progress import ProgressBars
from bot.cli.exits import Exit
from bot.errors import InfrastructureError
from bot.reports.templates import pluralize
from bot.store import Database, inbox, progress
from bot.store.models import CampaignState
from bot.terminal import echo

#: ONNX's node tests tell these two apart: 2024.0.0 converts the function bodies of AffineGrid, whose
#: `If` has a branch that no input takes; 2024.6.0, 2025.0.0, 2026.0.0 and 2026.4.1 refuse it.
BASE, HEAD = "2024.0.0", "2026.4.1"
POLL_S = 0.5


@click.command()
@click.option("--base", default=BASE, show_default=True, help="OpenVINO release that the first commit pins.")
@click.option("--head", default=HEAD, show_default=True, help="OpenVINO release that the second commit pins.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    show_default=True,
    help="Output folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(base: str, head: str, out: Path, as_json: bool) -> Exit:
    """Run an end-to-end demo on two OpenVINO releases: from a signed push to a rendered issue.

    Starts the service in dry-run mode, delivers a signed push of a small repository whose two commits pin the
    releases, and waits for the reports. A demo replaces the results of an earlier one and keeps its releases.
    """
    console = stderr(soft_wrap=True)
    started = time.monotonic()
    out = out.resolve()
    data_dir = demo.prepare_folder(out)
    stage = demo.make_repository(out / "repositories", base, head)
    console.print(f"{demo.TARGET}: {stage.base[:12]} pins OpenVINO {base}, {stage.head[:12]} pins {head}")
    with demo.service(data_dir, out / "repositories", out / "service.log") as running:
        console.print(f"the service listens on {running.url}; its log is {out / 'service.log'}")
        delivery = demo.deliver(running, stage)
        console.print(f"delivered a signed push as {delivery}: 202")
        campaign = _wait(running, data_dir, delivery, out / "service.log")
    result = _summarize(data_dir, campaign, time.monotonic() - started)
    if as_json:
        echo(json.dumps(result))
    else:
        _print(result)
    return Exit.OK


def _wait(running: demo.RunningService, data_dir: Path, delivery: str, log: Path) -> int:
    """Shows progress until the campaign and its effects are complete; returns its id."""
    database = Database(f"sqlite:///{data_dir}/assay.db")
    try:
        with ProgressBars() as progress_bars:
            while True:
                if running.process.poll() is not None:
                    raise InfrastructureError(f"the service stopped early; see {log}")
                with database.reading() as session:
                    seen = progress.of_delivery(session, delivery)
                    unused = None if seen else inbox.refusal(session, delivery)
                if unused is not None:
                    raise InfrastructureError(
                        f"the service starts no campaign for the push: {unused}; see {log}"
                    )
                if seen is not None:
                    progress_bars(Progress(seen.campaign, seen.state, seen.done, seen.total, seen.note))
                    if seen.state is CampaignState.FAILED:
                        raise InfrastructureError(f"the campaign failed: {seen.reason}")
                    if seen.state.ended and not seen.unsent:
                        return seen.campaign
                time.sleep(POLL_S)
    finally:
        database.close()


def _summarize(data_dir: Path, campaign: int, seconds: float) -> dict[str, Any]:
    folder = Artifacts("", data_dir).folder(campaign)
    report = json.loads((folder / "report.json").read_bytes())
    outbox = data_dir / "outbox" / demo.TARGET
    new = [group for group in report["groups"] if group["classification"] == "regression"]
    return {
        "seconds": round(seconds, 1),
        "toolchains": {side: chain["label"] for side, chain in report["toolchains"].items()},
        "ran": {side: sum(counts.values()) for side, counts in report["verdicts"].items()},
        "verdicts": report["verdicts"],
        "cases": dict(report["sections"].items()),
        "headline": report["headline"],
        "regressions": [
            {
                "title": group["title"],
                "cases": group["cases"],
                "reproducer": str(folder / group["reproducer"]) if group["reproducer"] else None,
            }
            for group in new
        ],
        "issues": sorted(str(path) for path in outbox.glob("issue-*.md")),
        "check_runs": sorted(str(path) for path in outbox.glob("check_run-*.md")),
        "report": str(folder / "report.html"),
        "data_dir": str(data_dir),
    }


def _print(result: dict[str, Any]) -> None:
    console = stdout()
    console.print(f"\n[bold]{escape(result['headline'])}[/]  ({result['seconds']:.0f} s in all)\n")
    for side in ("base", "head"):
        counts = ", ".join(f"{count:,} {name}" for name, count in result["verdicts"][side].items())
        ran = pluralize(result["ran"][side], "case")
        console.print(f"{side}: {ran} on {result['toolchains'][side]}: {counts}")
    names = {
        "new": "regressed",
        "support_lost": "no longer supported",
        "old": "already broken",
        "fixed": "fixed",
        "inconclusive": "inconclusive",
    }
    console.print()
    for section, count in result["cases"].items():
        console.print(f"  {count:5}  {names.get(section, section)}")
    console.print()
    for one in result["regressions"]:
        console.print(f"[bold]{escape(one['title'])}[/] ({pluralize(one['cases'], 'case')})")
    for kind, paths in (("issue", result["issues"]), ("check run", result["check_runs"])):
        for path in paths:
            console.print(f"  {kind:10}  {path}")
    for one in result["regressions"]:
        if one["reproducer"]:
            console.print(f"  {'reproducer':10}  {one['reproducer']}")
    console.print(f"  {'report':10}  {result['report']}")
    console.print(f"\ninspect it with: ASSAY_DATA_DIR={result['data_dir']} assay status {demo.TARGET}")
