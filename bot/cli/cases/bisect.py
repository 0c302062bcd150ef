"""Find the release of a compiler in which a stored case began to fail, or stopped failing."""

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
    help="Releases to look through, such as openvino:2023.0..2026.4; both ends belong to them.",
)
@click.option("--backend", help="Compiler to use. [default: the one that the package holds]")
@corpus_option
@data_set_option
@configuration_options
@click.option("--fixed-by", is_flag=True, help="Find the release in which it stopped failing.")
@click.option(
    "--any-failure", is_flag=True, help="Follow every failure of the compiler, not only the same one."
)
@click.option(
    "--repeats",
    default=DecisionRule.full,
    show_default=True,
    type=click.IntRange(2),
    help="Fresh processes for a release whose runs do not agree, and for the one the answer rests on.",
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
    """Find the release of a compiler in which a stored case began to fail, or stopped failing.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus. Releases are
    installed into environments of their own, as few as it takes, and kept; so is what the case did there, so
    that a bisection that was stopped goes on. Exit code 1 if the change was found, 0 if there is none in the
    range.
    """
    wanted = Range.parse(release_range)
    configuration = configure_backend(backend or _backend(wanted.package), device, given, profile)
    with find_case(case, corpus, data_set) as (store, found):
        if found.program.kind not in configuration.backend.kinds:
            raise UsageError(
                f"{configuration.name} takes {', '.join(configuration.backend.kinds)}, not {found.program.kind}"
            )
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
    """Executes shards here, until ONNX's own evaluator fails the case: it would in all releases alike."""

    def __init__(self, case: TestCase) -> None:
        self._case = case
        self._local = LocalRunner(1)

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """See `bot.runners.protocol.Runner.run`; raises UsageError for such a case."""

        def take(event: Event) -> None:
            if event["event"] == "outcome" and self._case.program.frontend == "onnx":
                outcome = Outcome.from_json(event["outcome"])
                if outcome.verdict is Verdict.INVALID:
                    which = f"{outcome.case[:16]} cannot be bisected, as its own library fails it"
                    raise UsageError(f"{which}: {outcome.summary}")
            on_event(event)

        self._local.run(shard, take, stop)


def _backend(package: str) -> str:
    """The compiler that a package holds; raises UsageError if that is not one."""
    named = [name for name in backends.compilers() if backends.get(name).package == package]
    if len(named) != 1:
        known = sorted({backends.get(name).package for name in backends.compilers()})
        which = f"several: {', '.join(named)}" if named else f"none; packages known: {', '.join(known)}"
        raise UsageError(f"--releases {package}: no one compiler goes by it, {which}; name it with --backend")
    return named[0]


def _bisect(query: BisectionQuery, wanted: Range, rule: DecisionRule, data_dir: Path) -> dict[str, Any]:
    """Looks through the releases, telling on stderr what is done."""

    def print_progress(line: str) -> None:
        click.echo(line, err=True)

    begin = time.monotonic()
    folder = data_dir / "bisections"
    folder.mkdir(parents=True, exist_ok=True)
    found = releases(wanted, Installer(folder), folder / "releases")
    print_progress(
        f"{wanted}: {len(found)} releases; {max_probed(len(found))} are tried at most, unless some must be skipped"
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
