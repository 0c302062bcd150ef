"""Find the release or commit in which a case began to fail, or stopped failing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bot.bisection.commit_plan import CommitQuestion
from bot.bisection.commit_range import CommitRange, tagged_range
from bot.bisection.commit_search import list_stages, search_commits
from bot.bisection.decision_rule import DecisionRule
from bot.bisection.journal import Journal
from bot.bisection.release_probe import BisectionQuery, ReleaseProbe, bisect_releases
from bot.bisection.releases import Range, releases
from bot.bisection.report import format_lines, result_to_json
from bot.bisection.search import ResultKind, max_probed
from bot.cli.common.case_lookup import find_case
from bot.cli.common.commit_toolchains import read_toolchain
from bot.cli.common.options import (
    configuration_options,
    configure_backend,
    corpus_option,
    data_set_option,
    json_option,
    validate_configuration,
)
from bot.cli.common.repositories import Repository, open_repository
from bot.cli.exits import Exit
from bot.config import ToolchainConfig
from bot.errors import UsageError
from bot.file_lock import file_lock
from bot.runners import LocalRunner
from bot.runners.protocol import Event, OnEvent
from bot.settings import load_settings
from bot.terminal import echo
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
    metavar="PACKAGE:OLDEST..NEWEST",
    help="Releases to search, such as openvino:2023.0..2026.4, both ends included.",
)
@click.option(
    "--repo",
    metavar="FOLDER|URL",
    help="Search commits of this repository of the compiler; with --releases, those between the two releases "
    "found.",
)
@click.option("--commits", metavar="GOOD..BAD", help="With --repo, the commits to search.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --repo, how its commits are made. [default: its .github/assay.yml]",
)
@click.option(
    "--provisioner",
    "provisioners",
    multiple=True,
    metavar="NAME",
    help="With --repo, what makes its commits; may be repeated. [default: those of the configuration]",
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
    release_range: str | None,
    repo: str | None,
    commits: str | None,
    config_file: Path | None,
    provisioners: tuple[str, ...],
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
    """Find the release or commit in which a case began to fail, or stopped failing.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus. Makes as few
    toolchains as possible, each in its own environment: releases are installed; commits are made by the
    provisioners of the repository's configuration, and those that cannot be are skipped. Environments and
    results are kept, so an interrupted bisection resumes. Exit code 1 if the change was found, 0 if the range
    holds none.
    """
    if repo is None:
        for name, given_one in (("commits", commits), ("config", config_file), ("provisioner", provisioners)):
            if given_one:
                raise UsageError(f"--{name} needs --repo")
    if not release_range and not commits:
        raise UsageError("name what to search: --releases, or --repo with --commits or --releases")
    if release_range and commits:
        raise UsageError("--releases and --commits exclude each other; with --releases, --repo searches on")
    wanted = Range.parse(release_range) if release_range else None
    repository = open_repository(repo, load_settings()) if repo else None
    between = CommitRange.parse(commits, repository) if commits and repository else None
    if backend is None and wanted is not None:
        backend = _backend(wanted.package)
    if backend is None and repository is not None and between is not None:
        backend, _ = read_toolchain(repository, between.bad, config_file, provisioners)
    configuration = configure_backend(str(backend), device, given, profile)
    rule, data_dir = DecisionRule(full=repeats), load_settings().data_dir
    with find_case(case, corpus, data_set) as (store, found):
        if found.program.kind not in configuration.backend.kinds:
            kinds = ", ".join(configuration.backend.kinds)
            raise UsageError(f"{configuration.name} takes {kinds}, not {found.program.kind}")
        query = BisectionQuery(
            corpus=store.root,
            case=found,
            backend=configuration.name,
            package=wanted.package if wanted else configuration.backend.package,
            device=configuration.device,
            options=configuration.options,
            profile=configuration.profile,
            fixed_by=fixed_by,
            any_failure=any_failure,
        )
        search = _Search(query, rule, data_dir)
        answers = [search.releases(wanted)] if wanted else []
        if repository and answers:
            between = tagged_range(repository, answers[0])
            if between is None:
                echo("the releases found have no tags in --repo: name --commits", err=True)
        if repository and between:
            own, toolchain = read_toolchain(repository, between.bad, config_file, provisioners)
            if own != query.backend:
                raise UsageError(f"--repo is a repository of {own}: use --backend {own}")
            answers.append(search.commits(repository, between, toolchain))
    answer = answers[-1]
    if as_json:
        echo(json.dumps(answer | {"releases_answer": answers[0]} if len(answers) > 1 else answer))
    else:
        echo("\n\n".join("\n".join(format_lines(one)) for one in answers))
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


@dataclass(frozen=True)
class _Search:
    """Searches releases or commits, and prints progress to stderr."""

    query: BisectionQuery
    rule: DecisionRule
    data_dir: Path

    def releases(self, wanted: Range) -> dict[str, Any]:
        """The release with the change."""
        folder = self._folder()
        found = releases(wanted, Installer(folder), folder / "releases")
        _print_progress(
            f"{wanted}: {len(found)} releases, "
            f"at most {max_probed(len(found))} to try unless some are skipped"
        )
        return self._search(self.query, wanted, found)

    def commits(
        self, repository: Repository, between: CommitRange, toolchain: ToolchainConfig
    ) -> dict[str, Any]:
        """The commit with the change; of a merge, the commit of the merged branch if that has it."""
        config = validate_configuration({"backend": self.query.backend})
        config = config.model_copy(update={"toolchain": toolchain})
        stages = list_stages(repository, between, config, self.data_dir)
        question = CommitQuestion(repository, self.query, self._search, _print_progress)
        return search_commits(stages, between, question)

    def _search(
        self, query: BisectionQuery, wanted: Range | CommitRange, found: Sequence[str]
    ) -> dict[str, Any]:
        begin = time.monotonic()
        ordered = found[::-1] if query.fixed_by else found
        journal = Journal(self._folder(), query.identity)
        with file_lock(journal.path.with_suffix(".lock")):
            probe = ReleaseProbe(query, ordered, self.data_dir, journal, _Runner(query.case), _print_progress)
            answer, probe = bisect_releases(probe, len(ordered), self.rule)
        return result_to_json(query, wanted, ordered, answer, probe, time.monotonic() - begin)

    def _folder(self) -> Path:
        folder = self.data_dir / "bisections"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _print_progress(line: str) -> None:
    echo(line, err=True)


def _exit(answer: dict[str, Any]) -> Exit:
    if answer["kind"] == ResultKind.ERROR.value:
        return Exit.INFRASTRUCTURE
    return Exit.FOUND if answer["release"] and answer["before"] else Exit.OK
