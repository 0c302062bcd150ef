"""Write a regression test for a bug in the target's own style."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import click

from bot.cli.common.case_lookup import find_case
from bot.cli.common.console import stderr
from bot.cli.common.execution import build_shard, find_toolchain, run_shard
from bot.cli.common.options import (
    ConfiguredBackend,
    configuration_options,
    configure_backend,
    json_option,
    python_option,
)
from bot.cli.common.progress import StatusLine
from bot.cli.common.service_database import find_bug, open_database
from bot.cli.exits import Exit
from bot.config.names import check_signer
from bot.errors import UsageError
from bot.github.local_repository import LocalRepository
from bot.proposals.commit_style import RECENT, recent_subjects
from bot.proposals.coverage_batch import (
    batch_patch,
    load_passing,
    newest_tested,
    passing_cases,
    propose_batch,
)
from bot.proposals.proposal import Proposal, propose
from bot.proposals.pull_request_text import write_subject
from bot.proposals.regression import Regression, load_program, load_regression, read_outline
from bot.proposals.tree import Tree, commit_tree, folder_tree
from bot.proposals.writer import ProposalSettings
from bot.reports.bug_facts import collect_bug_facts
from bot.reports.campaign_view import ToolchainView
from bot.runners import run_tool
from bot.settings import Settings, load_settings
from bot.store import Database, campaigns
from bot.store.models import Bug, BugState
from bot.terminal import echo
from fuzzing.oracles.tolerance_profiles import DEFAULT

_OPEN = frozenset({BugState.NEW, BugState.HELD, BugState.REPORTED})


@click.command()
@click.argument("bug", default="")
@click.option("--case", default="", help="Write the test from a failing case: as `assay reduce` takes it.")
@click.option("--backend", default="", help="Compiler that fails the case.")
@python_option
@configuration_options
@click.option(
    "--coverage-gap",
    "target",
    default="",
    metavar="TARGET",
    help="Write tests from cases of TARGET that pass and cover what its own tests leave out.",
)
@click.option(
    "--most", default=5, show_default=True, type=click.IntRange(1, 50), help="Tests of --coverage-gap."
)
@click.option("--dry-run", is_flag=True, help="Print the patch; change nothing.")
@click.option(
    "--repository",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A checkout to write the test for. Default: the newest commit that the service tested.",
)
@click.option(
    "--writer",
    default="",
    metavar="NAME",
    help="The writer, such as tvm-onnx; a wrong name lists all. Default: what fits the repository.",
)
@click.option("--path", default="", help="The file for tests of repositories without a known suite.")
@click.option(
    "--sign-off",
    "signer",
    default="",
    metavar="'NAME <ADDRESS>'",
    help="Print a commit for `git am` that you sign off (DCO), not only the patch.",
)
@json_option
def command(
    bug: str,
    case: str,
    backend: str,
    python: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    target: str,
    most: int,
    dry_run: bool,
    repository: Path | None,
    writer: str,
    path: str,
    signer: str,
    as_json: bool,
) -> Exit:
    """Write a regression test for a bug in the target's own style.

    BUG is its number or the beginning of its signature; `assay bugs` lists them. The patch is printed on
    stdout for `git apply`. In place of a BUG of the service, --case names a case that fails on the installed
    compiler, such as one that `assay run` found or `assay reduce` wrote, and --coverage-gap takes cases that
    pass.
    """
    if sum(map(bool, (bug, case, target))) != 1:
        raise UsageError("give a BUG, --case CASE or --coverage-gap TARGET")
    if bool(case) != bool(backend):
        raise UsageError("--case and --backend go together")
    if not case and (python != sys.executable or device or given or profile != DEFAULT):
        raise UsageError("--python, --device, --option and --profile need --case")
    if case and repository is None:
        raise UsageError("--case needs --repository, a checkout to write the test for")
    if not dry_run:
        raise UsageError(
            "give --dry-run: pull requests are opened by the service, on `/assay propose` in the bug's issue"
        )
    try:
        check_signer(signer) if signer else None
    except ValueError as error:
        raise UsageError(str(error)) from error
    wanted = ProposalSettings(writer, path or ProposalSettings().path)
    if target:
        return _propose_batch(target, most, repository, wanted, as_json)
    if case and repository:
        configuration = configure_backend(backend, device, given, profile)
        proposal, subject = _propose_case(case, configuration, python, repository, wanted)
        _show(proposal, subject, signer, as_json)
        return Exit.OK
    with open_database() as (settings, database), StatusLine() as line:
        line.show("reading the database")
        found, regression, commit = _load(database, bug, settings)
        tree = _tree(settings, repository, found.target, commit)
        line.show("writing the test")
        proposal = propose(regression, tree, wanted, is_open=BugState(found.state) in _OPEN)
        subject = write_subject(regression, proposal, _subjects(settings, repository, found.target, commit))
    _show(proposal, subject, signer, as_json)
    return Exit.OK


def _propose_case(
    case: str, configuration: ConfiguredBackend, python: str, checkout: Path, wanted: ProposalSettings
) -> tuple[Proposal, str]:
    """The test of a case that fails on the compiler of an interpreter, and its subject."""
    toolchain = find_toolchain(configuration.name, python)
    with find_case(case, None) as (store, found), StatusLine() as line:
        line.show(f"running {found.id[:16]} on {toolchain.spec.label}")
        shard = build_shard(configuration, toolchain, store.root, [found.id], workers=1)
        (outcome,) = run_shard(replace(shard, fresh=True))
        if not outcome.verdict.is_failure:
            raise UsageError(
                f"{found.id[:16]} is no failing case: {outcome.verdict.value} on {toolchain.spec.label} "
                f"({outcome.summary}); a regression test states what fails"
            )
        line.show("writing the test")
        view = ToolchainView(toolchain.spec.label, toolchain.versions, toolchain.spec.requirements)
        regression = load_program(
            found, outcome, view, store.root, read_outline(found.id, store.root, run_tool)
        )
        proposal = propose(regression, folder_tree(checkout), wanted, is_open=True)
        return proposal, write_subject(regression, proposal, _subjects(load_settings(), checkout, "", ""))


def _propose_batch(
    target: str, most: int, checkout: Path | None, wanted: ProposalSettings, as_json: bool
) -> Exit:
    """Prints a patch with the tests that add most, and on stderr what each adds."""
    with open_database() as (settings, database), StatusLine() as line:
        line.show("reading the database")
        with database.reading() as session:
            newest = newest_tested(session, target)
            cases, commit = passing_cases(session, newest), newest.head
        line.show(f"reading {len(cases)} passing cases")
        regressions = load_passing(cases, settings.data_dir / "corpus", run_tool)
        tree = _tree(settings, checkout, target, commit)
        line.show("writing the tests")
        batch = propose_batch(regressions, tree, wanted, most)
        patch = batch_patch(batch, tree)
    rows = [
        {
            "path": one.proposal.path,
            "test": one.proposal.name,
            "operators": one.gap.operators,
            "parameters": one.gap.parameters,
            "command": ["python", *one.proposal.command],
        }
        for one in batch
    ]
    if as_json:
        echo(json.dumps({"target": target, "cases": len(cases), "tests": rows, "patch": patch}))
        return Exit.OK
    echo(patch, nl=False)
    for one in batch:
        added = ", ".join((*one.gap.operators, *one.gap.parameters))
        stderr().print(
            f"{one.proposal.name} in {one.proposal.path} adds {added}", highlight=False, markup=False
        )
    if not batch:
        stderr().print(f"none of {len(cases)} passing cases adds to the tests of {target}", markup=False)
    return Exit.OK


def _load(database: Database, named: str, settings: Settings) -> tuple[Bug, Regression, str]:
    """The bug, its regression, and the newest commit that was tested, "" without one."""
    corpus = settings.data_dir / "corpus"
    with database.reading() as session:
        found = find_bug(session, named)
        facts = collect_bug_facts(session, found, corpus)
        newest = campaigns.newest(session, found.target, "")
        session.expunge_all()
    return found, load_regression(facts, corpus, run_tool), newest.head if newest is not None else ""


def _tree(settings: Settings, checkout: Path | None, target: str, commit: str) -> Tree:
    """The files of a checkout, else of a commit of a watched repository."""
    if checkout is not None:
        return folder_tree(checkout)
    if "/" not in target or not commit:
        raise UsageError(f"{target} has no commit to read files of; give a checkout with --repository")
    from bot.wiring.github import repositories

    return commit_tree(repositories(settings), target, commit)


def _subjects(settings: Settings, checkout: Path | None, target: str, commit: str) -> tuple[str, ...]:
    """The subjects of the last commits; none of a folder that is no checkout."""
    if checkout is None:
        from bot.wiring.github import repositories

        return recent_subjects(repositories(settings), target, commit)
    if not (checkout / ".git").exists():
        return ()
    local = LocalRepository(checkout, settings.data_dir / "objects")
    last = local.history("", local.resolve("HEAD"), RECENT)
    return tuple(local.message(one.sha).subject for one in last)


def _show(proposal: Proposal, subject: str, signer: str, as_json: bool) -> None:
    patch = proposal.mail(subject, signer) if signer else proposal.patch()
    if as_json:
        fields = {
            "writer": proposal.writer,
            "path": proposal.path,
            "test": proposal.name,
            "subject": subject,
            "other": proposal.other,
        }
        echo(json.dumps({**fields, "command": ["python", *proposal.command], "patch": patch}))
        return
    echo(patch, nl=False)
    if proposal.other:
        stderr().print(
            f"The same test for the C++ suite, not compiled:\n\n{proposal.other}",
            highlight=False,
            markup=False,
        )
    summary = (
        f"{proposal.name} in {proposal.path}" if patch else f"{proposal.path} has {proposal.name} already"
    )
    stderr().print(f"{summary}; run it: python {' '.join(proposal.command)}", highlight=False)
