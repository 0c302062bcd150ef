"""Copy cases to an object store and back, and remove those that add no coverage."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import click

from bot import corpus_pruning
from bot.cli.common.options import json_option
from bot.cli.common.progress import StatusLine
from bot.corpus_pruning import Decisions
from bot.corpus_store import CorpusStore
from bot.errors import UsageError
from bot.reports.templates import pluralize
from bot.settings import load_settings
from bot.terminal import echo
from fuzzing.cases import Corpus

#: Why a case stays, from `fuzzing.coverage.representatives`.
_REASONS = {
    "referred": "a bug, finding, proposal, job or campaign refers to it, or it failed",
    "unreadable": "it cannot be read",
    "operator": "a new operator",
    "edge": "a new edge between operators",
    "program": "a new program",
    "value": "a new value of a parameter",
    "pair": "a new pair of values",
}

_url = click.argument("url")
_corpus = click.option(
    "--corpus",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the cases. [default: the corpus of `assay run`]",
)


@click.group()
def command() -> None:
    """Copy cases to an object store and back, and remove those that add no coverage.

    URL is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or a folder. Cases are named by content, so each is copied
    once, and several corpora may be copied to one URL.
    """


@command.command(name="export")
@_url
@_corpus
@json_option
def export_cases(url: str, corpus: Path | None, as_json: bool) -> None:
    """Copy the cases to URL that it lacks."""
    folder = _existing(corpus)
    with StatusLine() as line:
        line.show(f"copying cases to {url}")
        copied = CorpusStore(url).export_cases(Corpus(folder))
    _print(
        {"corpus": str(folder), "url": url, "exported": copied},
        f"{pluralize(copied, 'case')} exported",
        as_json,
    )


@command.command(name="import")
@_url
@_corpus
@json_option
def import_cases(url: str, corpus: Path | None, as_json: bool) -> None:
    """Copy the cases from URL that the corpus lacks; `assay run --cases FOLDER` runs them."""
    folder = corpus or load_settings().data_dir / "corpus"
    with StatusLine() as line:
        line.show(f"copying cases from {url}")
        copied = CorpusStore(url).import_cases(Corpus(folder))
    _print(
        {"corpus": str(folder), "url": url, "imported": copied},
        f"{pluralize(copied, 'case')} imported",
        as_json,
    )


@command.command()
@_corpus
@click.option("--yes", is_flag=True, help="Remove the cases; without it, nothing changes.")
@click.option(
    "--list",
    "listed",
    type=click.File("w", encoding="utf-8", lazy=False),
    metavar="FILE",
    help="Write a line of JSON for each case: whether it stays, and why.",
)
@json_option
def prune(corpus: Path | None, yes: bool, listed: IO[str] | None, as_json: bool) -> None:
    """Remove the cases that add no coverage; see docs/coverage.md.

    A case stays if it shows an operator, an edge between two, a program, an abstract value of a parameter or
    a pair of values that no case before it shows. Cases of bugs, findings, proposals, jobs and unfinished
    campaigns stay, and so do those that failed. With --yes, services and runs of the data folder must not
    be active.
    """
    settings = load_settings()
    root = _existing(corpus)
    with ExitStack() as stack:
        if yes:
            stack.enter_context(corpus_pruning.locked_data(settings))
        line = stack.enter_context(StatusLine())
        keep = Path(stack.enter_context(TemporaryDirectory(prefix="assay-prune-")), "keep")
        corpus_pruning.write_references(settings, keep)
        decisions = corpus_pruning.decide(root, keep, line.note, listed)
        removed = 0
        if yes:
            line.show(f"removing {pluralize(len(decisions.removed), 'case')}")
            removed = corpus_pruning.remove(Corpus(root), decisions.removed)
    result: dict[str, Any] = {"corpus": str(root), "cases": decisions.cases, "kept": decisions.kept}
    result |= {
        "classes": decisions.classes,
        "removable": len(decisions.removed),
        "removed": removed,
    }
    if as_json:
        echo(json.dumps(result))
    else:
        _show(decisions, yes)


def _show(decisions: Decisions, removed: bool) -> None:
    for why, text in _REASONS.items():
        if why in decisions.kept:
            shown = decisions.classes.get(why)
            of = "" if shown is None else f", which show {pluralize(shown, 'class', 'classes')} in all"
            echo(f"{pluralize(decisions.kept[why], 'case')} kept: {text}{of}")
    count = len(decisions.removed)
    if not count or removed:
        echo(f"{pluralize(count, 'case')} of {decisions.cases:,} removed")
    else:
        echo(f"{pluralize(count, 'case')} of {decisions.cases:,} would be removed; --yes removes them")


def _existing(corpus: Path | None) -> Path:
    folder = corpus or load_settings().data_dir / "corpus"
    if not folder.is_dir():
        raise UsageError(f"there is no corpus at {folder}; name one with --corpus")
    return folder


def _print(result: dict[str, str | int], text: str, as_json: bool) -> None:
    echo(json.dumps(result) if as_json else text)
