"""Reduce a failing case to the smallest that shows the same bug."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.markup import escape

from bot.cli.common.case_lookup import find_case
from bot.cli.common.console import stdout
from bot.cli.common.execution import Event, build_shard, find_toolchain, run_tool_on_shard
from bot.cli.common.options import (
    configuration_options,
    configure_backend,
    corpus_option,
    data_set_option,
    json_option,
    python_option,
    workers_option,
)
from bot.cli.common.progress import StatusLine
from bot.cli.exits import Exit
from bot.errors import InfrastructureError, UsageError
from bot.reports import reproducer
from bot.reports.reference_outputs import add_reference_outputs
from bot.reports.reproducer_pair import render_pair
from bot.reports.reproducer_short import render_short
from bot.reports.templates import seconds
from bot.runners import run_tool
from bot.settings import load_settings
from bot.terminal import echo
from bot.toolchains import ReadyToolchain
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome


@click.command()
@click.argument("case")
@click.option("--backend", required=True, help="Compiler that fails the case.")
@corpus_option
@data_set_option
@python_option
@configuration_options
@click.option(
    "--runs", default=2000, show_default=True, type=click.IntRange(1), help="Maximum number of runs."
)
@click.option(
    "--budget", default=600.0, show_default=True, type=click.FloatRange(1), help="Time limit in seconds."
)
@workers_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the reduced case and its reproducer. [default: reduced/ID in the data folder]",
)
@click.option("--guarded", is_flag=True, help="Also write a reproducer with limits and exit codes.")
@json_option
def command(
    case: str,
    backend: str,
    corpus: Path | None,
    data_set: int | None,
    python: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    runs: int,
    budget: float,
    workers: int,
    out: Path | None,
    guarded: bool,
    as_json: bool,
) -> Exit:
    """Reduce a failing case to the smallest that shows the same bug.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus. Each candidate must
    fail with the same signature; other failures found on the way are stored as cases. If a part of the case
    already computes a wrong result, that part is named. An interrupted reduction resumes. Exit code 1; 2 if
    the case does not fail.
    """
    configuration = configure_backend(backend, device, given, profile)
    toolchain = find_toolchain(configuration.name, python)
    with find_case(case, corpus, data_set) as (store, found):
        folder = (out or load_settings().data_dir / "reduced" / found.id[:16]).absolute()
        kept = Corpus(folder / "corpus")
        kept.add(store.get(found.id))
        shard = build_shard(configuration, toolchain, kept.root, [found.id], workers=workers)
        ended = _reduce(shard, runs, budget, folder / f"{toolchain.digest[:16]}.journal")
    result = _written(ended, kept, toolchain, folder, guarded)
    if as_json:
        echo(json.dumps(result))
    else:
        _show(result)
    return Exit.FOUND


def _reduce(shard: Shard, runs: int, budget: float, journal: Path) -> Event:
    """Runs the reduction; returns its last event with the other failures found."""
    ended: Event = {"others": []}
    with StatusLine() as line:

        def take(event: Event) -> None:
            kind = event.pop("event", "")
            if kind == "step":
                line.show(f"reducing: size {_size(event['size'])} after {event['run']} runs")
            elif kind == "other":
                ended["others"].append(event["id"])
            elif kind == "unreducible":
                raise UsageError(str(event["reason"]))
            elif kind == "end":
                ended.update(event)

        arguments = ["--runs", str(runs), "--seconds", str(budget), "--journal", str(journal)]
        run_tool_on_shard(shard, "fuzzing.reduce", arguments, take)
    if "id" not in ended:
        raise InfrastructureError("the reduction stopped early; run it again to resume")
    return ended


def _size(numbers: list[float]) -> str:
    return " · ".join(f"{number:g}" for number in numbers[:4])


def _written(ended: Event, kept: Corpus, toolchain: ReadyToolchain, folder: Path, guarded: bool) -> Event:
    """The result, with the reproducers written beside the case: the short one where there is one."""
    outcome = Outcome.from_json(ended["outcome"])
    case = kept.get(ended["id"])
    result = ended | {"case": str(kept.folder(case.id)), "reproducer": "", "guarded": ""}
    texts: list[Event] = []
    run_tool("fuzzing.triage.program_text", ["--corpus", str(kept.root), case.id], texts.append)
    code = "".join(str(one["code"]) for one in texts)
    if script := render_pair(case, outcome, toolchain, code):
        result["reproducer"] = str(folder / f"{case.id[:16]}.py")
        Path(result["reproducer"]).write_text(script, encoding="utf-8")
    if not reproducer.has_guarded_script(outcome.backend, case):
        return result
    complete = add_reference_outputs(case, kept.root)
    short = render_short(complete, outcome, toolchain, code)
    files = {"reproducer": (f"{case.id[:16]}.py", short)}
    if guarded or not short:
        name = f"{case.id[:16]}.guarded.py" if short else f"{case.id[:16]}.py"
        script = reproducer.render(complete, outcome, toolchain, filename=name)
        files["guarded" if short else "reproducer"] = (name, script)
    for key, (name, text) in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        result[key] = str(folder / name)
    return result


def _show(result: Event) -> None:
    console = stdout()
    outcome = Outcome.from_json(result["outcome"])
    console.print(f"[red]{outcome.verdict.value}[/] on {outcome.backend}: {escape(outcome.summary)}")
    for word, before, after in zip(result["words"], result["before"], result["after"], strict=False):
        console.print(f"  {word:12} {before:g} → {after:g}")
    if result.get("root"):
        console.print(f"  the wrong result comes from case {result['root'][:16]}")
    known = f", {result['replayed']} from earlier runs" if result["replayed"] else ""
    console.print(f"  {result['runs']} runs{known}, {seconds(result['seconds'])}; {_ending(result)}")
    console.print(f"\ncase        {result['case']}")
    if result["reproducer"]:
        console.print(f"reproducer  {result['reproducer']}")
    if result["guarded"]:
        console.print(f"guarded     {result['guarded']}")
    if result["others"]:
        console.print(f"other failures found: {', '.join(other[:16] for other in result['others'])}")


def _ending(result: Event) -> str:
    """Why the reduction ended."""
    if not result["confirmed"]:
        return "[yellow]not reduced: the smallest candidate did not fail in a fresh process[/]"
    if not result["minimal"]:
        return "stopped at the budget"
    same = result["before"] == result["after"]
    return "already minimal" if same else "minimal"
