"""Find the release in which a case began to fail, or stopped failing."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import click

from bot.bisection.decision_rule import DecisionRule
from bot.bisection.journal import Journal
from bot.bisection.release_probe import BisectionQuery, ReleaseProbe, bisect_releases
from bot.bisection.releases import Range, releases
from bot.bisection.report import format_lines, result_to_json
from bot.bisection.search import ResultKind, max_probed
from bot.cli.common.case_lookup import find_case
from bot.cli.common.options import (
    configuration_options,
    configure_backend,
    corpus_option,
    data_set_option,
    json_option,
)
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.file_lock import file_lock
from bot.runners import LocalRunner
from bot.runners.protocol import Event, OnEvent
from bot.settings import load_settings
from bot.toolchains.installer import Installer
from fuzzing import backends
from fuzzing.cases import TestCase
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict


@click.command()
@click.argument("case")
@click.option(
    "--releases",
    "release_range",
    required=True,
    metavar="PACKAGE:OLDEST..NEWEST",
    help="Releases to search, such as openvino:2023.0..2026.4, both ends included.",
)
@click.option("--backend", help="Compiler to use. [default: that of the package]")
@corpus_option
@data_set_option
@configuration_options
@click.option("--fixed-by", is_flag=True, help="Find the release in which it stopped failing.")
@click.option("--any-failure", is_flag=True, help="Count every failure, not only the same one.")
@click.option(
    "--repeats",
    default=DecisionRule.full,
    show_default=True,
    type=click.IntRange(2),
    help="Fresh processes for releases with inconsistent runs, and for the result.",
)
@json_option
def command(
    case: str,
    release_range: str,
    backend: str | None,
    corpus: Path | None,
    data_set: int | None,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    fixed_by: bool,
    any_failure: bool,
    repeats: int,
    as_json: bool,
) -> Exit:
    """Find the release in which a case began to fail, or stopped failing.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus. Installs as few
    releases as possible, each into its own environment. Environments and results are kept, so an interrupted
    bisection resumes. Exit code 1 if the change was found, 0 if the range holds none.
    """
    wanted = Range.parse(release_range)
    configuration = configure_backend(backend or _backend(wanted.package), device, given, profile)
    with find_case(case, corpus, data_set) as (store, found):
        if found.program.kind not in configuration.backend.kinds:
            kinds = ", ".join(configuration.backend.kinds)
            raise UsageError(f"{configuration.name} takes {kinds}, not {found.program.kind}")
        query = BisectionQuery(
            corpus=store.root,
            case=found,
            backend=configuration.name,
            package=wanted.package,
            device=configuration.device,
            options=configuration.options,
            profile=configuration.profile,
            fixed_by=fixed_by,
            any_failure=any_failure,
        )
        answer = _bisect(query, wanted, DecisionRule(full=repeats), load_settings().data_dir)
    click.echo(json.dumps(answer) if as_json else "\n".join(format_lines(answer)))
    return _exit(answer)


class _Runner:
    """Runs shards locally; stops if ONNX's own evaluator fails the case, as it would for all releases."""

    def __init__(self, case: TestCase) -> None:
        self._case = case
        self._local = LocalRunner(1)

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """See `bot.runners.protocol.Runner.run`; raises UsageError for such a case."""

        def take(event: Event) -> None:
            if event["event"] == "outcome" and self._case.program.frontend == "onnx":
                outcome = Outcome.from_json(event["outcome"])
                if outcome.verdict is Verdict.INVALID:
                    which = f"{outcome.case[:16]} cannot be bisected: its own library fails it"
                    raise UsageError(f"{which}: {outcome.summary}")
            on_event(event)

        self._local.run(shard, take, stop)


def _backend(package: str) -> str:
    """The compiler of a package; raises UsageError unless there is exactly one."""
    named = [name for name in backends.compilers() if backends.get(name).package == package]
    if len(named) != 1:
        known = sorted({backends.get(name).package for name in backends.compilers()})
        several = f"the package of several compilers: {', '.join(named)}"
        none = f"no compiler's package; packages known: {', '.join(known)}"
        raise UsageError(f"--releases {package}: {several if named else none}; use --backend")
    return named[0]


def _bisect(query: BisectionQuery, wanted: Range, rule: DecisionRule, data_dir: Path) -> dict[str, Any]:
    """Searches the releases and prints progress to stderr."""

    def print_progress(line: str) -> None:
        click.echo(line, err=True)

    begin = time.monotonic()
    folder = data_dir / "bisections"
    folder.mkdir(parents=True, exist_ok=True)
    found = releases(wanted, Installer(folder), folder / "releases")
    print_progress(
        f"{wanted}: {len(found)} releases, at most {max_probed(len(found))} to try unless some are skipped"
    )
    ordered = found[::-1] if query.fixed_by else found
    journal = Journal(folder, query.identity)
    with file_lock(journal.path.with_suffix(".lock")):
        release_probe = ReleaseProbe(query, ordered, data_dir, journal, _Runner(query.case), print_progress)
        answer, release_probe = bisect_releases(release_probe, len(ordered), rule)
    took = time.monotonic() - begin
    return result_to_json(query, wanted, ordered, answer, release_probe, took)


def _exit(answer: dict[str, Any]) -> Exit:
    if answer["kind"] == ResultKind.ERROR.value:
        return Exit.INFRASTRUCTURE
    return Exit.FOUND if answer["release"] and answer["before"] else Exit.OK
