"""Run a campaign on an installed compiler, a release or a commit."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from packaging.version import InvalidVersion, Version

from bot.bugs.publication import CampaignPublisher
from bot.campaigns.local_run import run_locally
from bot.campaigns.plan.catalog import CorpusCases, SourceCatalog
from bot.campaigns.plan.sample import Sample
from bot.campaigns.services import ReadyToolchain, Services, ToolchainSpec
from bot.cli.campaigns import run_summary
from bot.cli.campaigns.commit_pair import CommitPair, Selection, make_base, read_commits, read_config
from bot.cli.campaigns.generation_options import (
    check_generation_options,
    generation_options,
    migration_words,
)
from bot.cli.campaigns.interruption import Interruption
from bot.cli.campaigns.pinned_release import PinnedRelease
from bot.cli.campaigns.report_folder import report_folder
from bot.cli.campaigns.rungs import RungResult, parse_rungs, run_rungs
from bot.cli.common.case_lookup import linked_corpus, open_corpus
from bot.cli.common.options import (
    case_options,
    configuration_options,
    json_option,
    parse_options,
    program_kinds,
    python_option,
    select_configuration,
)
from bot.cli.common.progress import ProgressBars
from bot.cli.common.repositories import open_repository
from bot.cli.exits import Exit
from bot.commit_files import CommitFiles, ReadFile
from bot.config import RepositoryConfig, names
from bot.config.units import parse_duration
from bot.errors import InfrastructureError, ProvisionError, UsageError
from bot.logs import configure
from bot.settings import Settings, load_settings
from bot.store import Database, outcomes
from bot.store.outcomes import CacheKey
from bot.terminal import echo
from bot.toolchains import resolve
from bot.toolchains.existing import existing_spec
from bot.toolchains.installer import UnknownReleaseError
from bot.verdict_cache import open_database, open_verdict_cache
from bot.wiring.campaigns import campaign_services
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.errors import CaseFormatError
from fuzzing.execute import gpu_slots
from fuzzing.outcomes import Verdict


@dataclass(frozen=True)
class _Arguments:
    """Command-line arguments that are not part of the configuration.

    fixed         side, as head and base are named here → its toolchain, where that is no release
    interruption  ends campaigns early
    """

    python: str
    release: str
    base: str
    cases: Path | None
    keep: bool
    report: bool
    commits: CommitPair | None = None
    fixed: Mapping[str, ToolchainSpec] = field(default_factory=dict)
    generation: tuple[tuple[str, str], ...] = ()
    sample: int | None = None
    seed: int = 0
    interruption: Interruption = field(default_factory=Interruption)

    @property
    def head(self) -> str:
        """The campaign's head: a commit, a release, or "installed"."""
        return self.commits.head if self.commits else self.release or "installed"


@click.command()
@click.option(
    "--backend",
    "--library",
    "backend",
    help="Compiler or library to test; `assay doctor` lists them. [default with --repo: the repository's]",
)
@case_options
@click.option("--budget", default="5m", show_default=True, help="Time to run cases, such as 90s or 5m.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for report.html, report.md, report.json and reproducers. [default: none is written]",
)
@python_option
@click.option("--release", default="", help="Test this release in an environment of its own.")
@click.option(
    "--with",
    "beside",
    multiple=True,
    metavar="NAME==VERSION",
    help="Install this beside the releases, such as the torch of their time; repeatable.",
)
@click.option(
    "--base",
    default="",
    help="Compare with this release, the compiler of this interpreter (a path) or, with --repo, this commit. "
    "[default with --repo: the parent of head, or where the pull request refs/pull/N/head began]",
)
@click.option(
    "--repo",
    metavar="FOLDER|URL",
    help="Test commits of this repository, as its .github/assay.yml says; a known compiler's needs none. "
    "--release names the wheel under its sources.",
)
@click.option(
    "--head",
    default="",
    help="With --repo, the commit to test. [default: WORKTREE, the files as they are, uncommitted ones too; "
    "of a URL, the newest commit]",
)
@configuration_options
@click.option(
    "--repeats",
    default=3,
    show_default=True,
    type=click.IntRange(1, 20),
    help="Fresh processes that repeat each failure.",
)
@click.option(
    "--reduce",
    "reduced",
    default=0,
    show_default=True,
    type=click.IntRange(0, 1000),
    help="Number of failing cases to reduce, up to two minutes each.",
)
@generation_options
@click.option("--rungs", default="", help="Run these rungs of the backend in turn, on what passed before.")
@click.option(
    "--workers", type=click.IntRange(1), help="Number of parallel workers. [default: one for each core]"
)
@click.option("--no-cache", is_flag=True, help="Do not read or write cached verdicts.")
@json_option
def command(
    backend: str | None,
    frontend: str | None,
    sources: tuple[str, ...],
    cases: Path | None,
    strategy: str | None,
    budget: str,
    report: Path | None,
    python: str,
    release: str,
    beside: tuple[str, ...],
    base: str,
    repo: str | None,
    head: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    repeats: int,
    reduced: int,
    seed: int | None,
    sample: int | None,
    count: int | None,
    blocks: int | None,
    reward: str | None,
    ablation: bool,
    models: Path | None,
    rules: str | None,
    rungs: str,
    workers: int | None,
    no_cache: bool,
    as_json: bool,
) -> int:
    """Run a campaign on an installed compiler, a release or a commit.

    Prints the number of cases by verdict and phase, and the speed. Verdicts are cached: a second run on the
    same compiler runs only new cases. Ctrl-C or SIGTERM ends it early, with a report of what ran. Exit code 1
    if a case fails (with --base: fails and passes at base); 130 or 143 after such a signal.
    """
    if head and repo is None:
        raise UsageError("--head needs --repo")
    if repo is None:
        _check_version("--release", release)
        if not _is_interpreter(base):
            _check_version("--base", base)
    if python != sys.executable and release:
        raise UsageError(
            f"--release {release} and --python {python} name two compilers to test; "
            "give one of them as --base to compare, or leave one out"
        )
    if python != sys.executable and repo is not None and (head or not base):
        raise UsageError("--python with --repo is compared with a commit: name it as --base, without --head")
    if beside and not (release or repo or (base and not _is_interpreter(base))):
        raise UsageError("--with installs packages beside a release: name one with --release")
    settings = load_settings(workers=workers)
    configure("console", "error")
    seconds = _seconds(budget)
    selection = Selection(backend, frontend, sources, device, parse_options(given))
    repository = open_repository(repo, settings) if repo is not None else None
    own = None
    if repository is not None:
        own = read_config(repository, base if python != sys.executable else head)
        selection = selection.completed_from(own, other_cases=cases is not None)
    options, chosen = selection.options, selection.backend
    if chosen is None:
        raise UsageError("--backend is missing: name one of " + ", ".join(names.backends()))

    def configure_campaign(options: dict[str, str], seconds: float) -> RepositoryConfig:
        return select_configuration(
            chosen,
            selection.frontend,
            selection.sources,
            cases,
            strategy,
            {"budget": budget, "toolchain": ", ".join(beside)},
            budget=seconds,
            device=selection.device,
            options=options,
            profile=profile,
            repeats=repeats,
            reduction={"cases": reduced},
            toolchain={"extra": list(beside)},
        )

    config = configure_campaign(options, seconds)
    rung_names = parse_rungs(chosen, rungs) if rungs else ()
    if rungs and (release or repo or base):
        raise UsageError("--rungs tests an installed compiler; leave out --release, --base and --repo")
    arguments = _Arguments(
        python,
        release,
        base,
        cases and open_corpus(cases),
        not no_cache,
        report is not None,
        generation=check_generation_options(
            {
                "seed": seed,
                "count": count,
                "blocks": blocks,
                "reward": reward,
                "ablation": 1 if ablation else None,
                "rules": rules,
                "models": models and models.absolute(),
            },
            () if cases else config.sources,
            used=() if sample is None else ("seed",),
        ),
        sample=sample,
        seed=seed or 0,
    )
    corpus = settings.data_dir / "corpus"
    kept = (
        linked_corpus(arguments.cases, corpus)
        if arguments.cases and reduced
        else nullcontext(arguments.cases)
    )
    with (
        report_folder(report) as folder,
        ProgressBars() as progress_bars,
        kept as corpus_folder,
        arguments.interruption as interruption,
    ):
        arguments = replace(arguments, cases=corpus_folder)
        if repository is not None and own is not None and python != sys.executable:
            ready = make_base(repository, base, config, own, settings.data_dir, progress_bars.note)
            assert ready.spec.commit is not None
            base = ready.spec.commit.sha
            arguments = replace(arguments, base=base, fixed={base: ready.spec})
        elif repository is not None and own is not None:
            note = progress_bars.note
            commits = read_commits(repository, head, base, release, config, own, settings.data_dir, note)
            early = _compare_sources(commits, settings, progress_bars.note)
            if early is not None:
                return _report_early(commits, *early, as_json=as_json)
            arguments = replace(arguments, commits=commits, base=commits.base)
        if rung_names:
            campaigns = _RungCampaigns(settings, configure_campaign, folder, corpus, arguments, progress_bars)
            done = run_rungs(
                chosen, rung_names, options, seconds, campaigns.run, interruption.end_early.is_set
            )
            code = _report_rungs(done, folder if report else None, as_json=as_json)
            return interruption.exit_code or code
        result, _ = _campaign(settings, config, folder, arguments, progress_bars)
    if as_json:
        commits_json = arguments.commits.to_json() if arguments.commits else {}
        echo(json.dumps(result | commits_json | {"report": str(folder) if report else None}))
    else:
        run_summary.print_summary(
            result, folder if report else None, lambda case: _replay_arguments(arguments, case)
        )
    code = _exit_code([result], ("regression",) if arguments.base else ("regression", "inconclusive"))
    return interruption.exit_code or code


@dataclass(frozen=True)
class _RungCampaigns:
    """Runs the campaigns of rungs; each writes its report in a folder of its own.

    configure  (options, seconds) → the configuration
    """

    settings: Settings
    configure: Callable[[dict[str, str], float], RepositoryConfig]
    folder: Path
    corpus: Path
    arguments: _Arguments
    progress_bars: ProgressBars

    def run(
        self, rung: str, options: dict[str, str], seconds: float, only: Sequence[str] | None
    ) -> RungResult:
        """The campaign of a rung on the cases of the sources, or on `only` some of them."""
        self.progress_bars.note(f"rung {rung}")
        config, folder = self.configure(options, seconds), self.folder / rung
        folder.mkdir(exist_ok=True)
        cases = self.arguments.cases or self.corpus
        chosen: AbstractContextManager[Path | None]
        chosen = nullcontext() if only is None else linked_corpus(cases, self.corpus, only)
        with chosen as left:
            given = (
                self.arguments
                if left is None
                else replace(self.arguments, cases=left, generation=(), sample=None)
            )
            return RungResult(rung, *_campaign(self.settings, config, folder, given, self.progress_bars))


def _report_rungs(done: Sequence[RungResult], report: Path | None, *, as_json: bool) -> Exit:
    """Prints the results of rungs; the exit code."""
    if as_json:
        rungs = [{"rung": one.name} | one.result for one in done]
        echo(json.dumps({"rungs": rungs, "report": str(report) if report else None}))
    for one in () if as_json else done:
        echo(f"rung {one.name}: {len(one.passed)} cases pass")
        run_summary.print_summary(one.result, report and report / one.name, lambda _case: "")
    return _exit_code([one.result for one in done], ("regression", "inconclusive"))


def _exit_code(results: Sequence[dict[str, Any]], failures: Sequence[str]) -> Exit:
    groups = [group for result in results for group in result["groups"]]
    return Exit.FOUND if any(group["classification"] in failures for group in groups) else Exit.OK


def _compare_sources(
    commits: CommitPair, settings: Settings, progress: Callable[[str], None]
) -> tuple[Exit, str] | None:
    """The exit code and why, where no case has to run; None where cases can distinguish head from base.

    Names on stderr what was passed over and what is not tested.
    """
    for why in commits.passed_over:
        echo(why, err=True)
    if commits.out_of_reach:
        shown = ", ".join(commits.out_of_reach[:5]) + (", …" if len(commits.out_of_reach) > 5 else "")
        echo(f"not tested, because only a build of the compiler has it: {shown}", err=True)
    if commits.same_compiler:
        if predates := commits.specs[commits.head].predates:
            raise ProvisionError(f"nothing was tested: {predates}")
        what = "nothing was tested" if commits.out_of_reach else "nothing here that a case could reach"
        return Exit.OK, f"{what}: {commits.equality}"
    broken = commits.head_failure(settings.data_dir, progress)
    return (Exit.FOUND, f"this change breaks importing or compiling everything: {broken}") if broken else None


def _report_early(commits: CommitPair, code: Exit, headline: str, *, as_json: bool) -> Exit:
    if as_json:
        echo(json.dumps(commits.to_json() | {"headline": headline, "groups": []}))
    else:
        echo(headline)
    return code


def _replay_arguments(arguments: _Arguments, case: str) -> str | None:
    """Options that `assay replay` needs for a case beside those in the report; None if a release was tested.

    Cases made by reduction are in the service's corpus, not in the folder of --cases.
    """
    if arguments.release or arguments.commits:
        return None
    python = f" --python {shlex.quote(arguments.python)}" if arguments.python != sys.executable else ""
    if arguments.cases is None or not Corpus(arguments.cases).folder(case).exists():
        return python
    return f"{python} --corpus {shlex.quote(str(arguments.cases))}"


def _check_version(option: str, text: str) -> None:
    """Raises UsageError for a text that is given and is not a version."""
    try:
        Version(text or "0")
    except InvalidVersion:
        raise UsageError(f"{option} {text}: not a version; write one such as 1.24.1") from None


def _feedback(arguments: _Arguments, config: RepositoryConfig) -> str:
    """The compiler that a reward of graph-search asks; raises UsageError if that is not the one tested."""
    if arguments.release or arguments.commits or arguments.python != sys.executable:
        raise UsageError(
            "--reward asks the compiler installed with Assay; leave out --release, --repo, --python"
        )
    return config.backend


def _seconds(budget: str) -> float:
    try:
        return parse_duration(budget)
    except ValueError as error:
        raise UsageError(f"--budget {budget}: {error}") from None


def _campaign(
    settings: Settings,
    config: RepositoryConfig,
    folder: Path,
    arguments: _Arguments,
    progress_bars: ProgressBars,
) -> tuple[dict[str, Any], list[str]]:
    """Runs the campaign and returns report.json, and the cases that passed at head, in rank order."""
    corpus = arguments.cases or settings.data_dir / "corpus"
    changes: dict[str, Any] = {
        "repositories": PinnedRelease(backends.get(config.backend).package),
        "reports": CampaignPublisher(corpus, lambda _campaign: folder, write_pages=arguments.report),
        "corpus": corpus,
    }
    if arguments.cases is not None:
        cases = CorpusCases(arguments.cases, program_kinds(config))
        changes["catalogs"] = lambda _corpus, _sources: [cases]
    elif arguments.generation:
        changes["catalogs"] = lambda corpus, sources: [
            SourceCatalog(
                corpus,
                source,
                migration_words(source, arguments.generation, partial(_feedback, arguments, config)),
            )
            for source in sources
        ]
    if arguments.sample is not None:
        changes["sample"] = Sample(arguments.sample, arguments.seed)
    if arguments.commits is not None:
        changes |= {"repositories": arguments.commits.repository, "resolve": arguments.commits.resolve}
    else:
        changes["resolve"] = partial(_resolve, arguments)
    with _database(settings, config, arguments) as database:
        services = _with_toolchains(
            campaign_services(settings, **changes), settings, config, arguments, progress_bars
        )
        try:
            campaign = run_locally(
                database,
                settings,
                services,
                config,
                target=config.backend,
                head=arguments.head,
                base=arguments.base,
                seed=arguments.seed,
                on_progress=arguments.interruption.watched(progress_bars),
                end_early=arguments.interruption.end_early,
            )
        except InfrastructureError:
            if arguments.cases is not None:
                _check_cases(arguments.cases)
            raise
        with database.reading() as session:
            key = CacheKey.of(campaign.head_toolchain or "", config.to_json())
            passed = outcomes.cases_with_verdict(session, campaign.id, key, [Verdict.PASS])
    result: dict[str, Any] = json.loads((folder / "report.json").read_bytes())
    return result, passed


def _resolve(arguments: _Arguments, config: RepositoryConfig, read: ReadFile) -> ToolchainSpec:
    """The toolchain of one side: an interpreter, a release, or one that is made already."""
    assert isinstance(read, CommitFiles)
    if read.sha in arguments.fixed:
        return arguments.fixed[read.sha]
    if read.sha == arguments.head and not arguments.release:
        return existing_spec(config.backend, arguments.python)
    if _is_interpreter(read.sha):
        return existing_spec(config.backend, read.sha)
    return replace(resolve(config, read), source="the command line")


def _is_interpreter(word: str) -> bool:
    """Whether --base names an interpreter and no release."""
    return os.sep in word


def _check_cases(folder: Path) -> None:
    """Raises UsageError if a case of the folder is broken, which is not an infrastructure failure."""
    corpus = Corpus(folder)
    for case_id in corpus.ids():
        try:
            corpus.get(case_id)
        except CaseFormatError as error:
            broken = UsageError(f"--cases {folder}: broken case: {error}")
            broken.add_note(f"recreate or delete {corpus.folder(case_id)}, then run the command again")
            raise broken from None


def _with_toolchains(
    services: Services,
    settings: Settings,
    config: RepositoryConfig,
    arguments: _Arguments,
    progress_bars: ProgressBars,
) -> Services:
    """The services with installed toolchains, so that errors appear before cases are collected.

    Raises ProvisionError, or ToolchainError if the device is missing.
    """
    if config.device == gpu_slots.CUDA_DEVICE:
        gpu_slots.GpuPool(kinds=backends.get(config.backend).devices).close()
    made: dict[ToolchainSpec, ReadyToolchain] = {}

    def provision(spec: ToolchainSpec, data_dir: Path, progress: Callable[[str], None]) -> ReadyToolchain:
        if spec not in made:
            made[spec] = services.provision(spec, data_dir, progress)
        return made[spec]

    for option, sha in (("--release", arguments.head), ("--base", arguments.base)):
        if sha:
            spec = services.resolve(config, CommitFiles(services.repositories, config.backend, sha))
            progress_bars.note(f"installing the toolchain {spec.label}")
            with name_option(option, sha):
                provision(spec, settings.data_dir, progress_bars.note)
    return replace(services, provision=provision)


@contextmanager
def name_option(option: str, release: str) -> Iterator[None]:
    """Turns "there is no such release" into a UsageError that names the option it came from."""
    try:
        yield
    except UnknownReleaseError as error:
        raise UsageError(f"{option} {release}: {error}") from None


@contextmanager
def _database(settings: Settings, config: RepositoryConfig, arguments: _Arguments) -> Iterator[Database]:
    if arguments.keep:
        with open_verdict_cache(settings.data_dir, config.backend) as database:
            yield database
        return
    with (
        tempfile.TemporaryDirectory(prefix="assay-run-") as folder,
        open_database(Path(folder) / "run.db") as database,
    ):
        yield database
