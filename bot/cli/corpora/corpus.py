"""Copy cases to an object store or a folder, and back."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bot.cli.common.options import json_option
from bot.cli.common.progress import StatusLine
from bot.corpus_store import CorpusStore
from bot.errors import UsageError
from bot.reports.templates import pluralize
from bot.settings import load_settings
from bot.terminal import echo
from fuzzing.cases import Corpus

_url = click.argument("url")
_corpus = click.option(
    "--corpus",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the cases. [default: the corpus of `assay run`]",
)


@click.group()
def command() -> None:
    """Copy cases to an object store or a folder, and back.

    URL is s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or a folder. Cases are named by content, so each is copied
    once, and several corpora may be copied to one URL.
    """


@command.command(name="export")
@_url
@_corpus
@json_option
def export_cases(url: str, corpus: Path | None, as_json: bool) -> None:
    """Copy the cases to URL that it lacks."""
    folder = corpus or load_settings().data_dir / "corpus"
    if not folder.is_dir():
        raise UsageError(f"there is no corpus at {folder}; name one with --corpus")
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


def _print(result: dict[str, str | int], text: str, as_json: bool) -> None:
    echo(json.dumps(result) if as_json else text)
