"""Options of `assay run` for generated sources, and for a sample of any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bot.config import names
from bot.errors import UsageError

_OPTIONS = (
    click.option(
        "--seed",
        type=click.IntRange(0),
        help="Seed of the generated sources, of the sample and of the ranking. [default: 0]",
    ),
    click.option(
        "--sample",
        type=click.IntRange(1),
        metavar="N",
        help="Run N cases only, drawn by --seed from all cases of the sources together, each with the same "
        "chance. [default: all cases]",
    ),
    click.option(
        "--count",
        "--inputs",
        "count",
        type=click.IntRange(1),
        help="Size of the generated sources: models, or calls of each API. "
        "[default: 1000 for isra, 400 for eagle]",
    ),
    click.option(
        "--blocks", type=click.IntRange(1), help="Blocks of each model of graph-search. [default: 1 to 10]"
    ),
    click.option(
        "--reward",
        type=click.Choice(names.rewards()),
        help="What graph-search rewards; all but coverage run its models on the installed compiler "
        "meanwhile. torchprobe has compiler-coverage.",
    ),
    click.option(
        "--ablation",
        is_flag=True,
        help="Also search with less of graph-search's method, without the compiler, for a chart in the "
        "report.",
    ),
    click.option(
        "--models",
        type=click.Path(path_type=Path, exists=True),
        help="A model or a folder of models for onnx-mutants. [default: ONNX's node tests]",
    ),
    click.option(
        "--rules", help="Equivalence rules of the source eagle, by commas; `assay rules`. [default: all]"
    ),
)


def generation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: adds the options; see `check_generation_options`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_generation_options(
    options: Mapping[str, Any], sources: Sequence[str], used: Collection[str] = ()
) -> tuple[tuple[str, str], ...]:
    """The given options as texts. Raises UsageError for one that no source has and that is not `used`."""
    given = {name: str(value) for name, value in options.items() if value is not None}
    for name in given.keys() - used:
        if not any(name in names.generation_options(source) for source in sources):
            known = ", ".join(
                source for source in names.sources() if name in names.generation_options(source)
            )
            raise UsageError(f"--{name} is for generated sources; add --source with one of: {known}")
    return tuple(given.items())


def migration_words(
    source: str, generation: Sequence[tuple[str, str]], feedback: Callable[[], str]
) -> tuple[str, ...]:
    """The words for the migration of one source, of the options that it has.

    feedback  the compiler that rewards of graph-search ask, or a UsageError; called if it is needed
    """
    options = [(name, value) for name, value in generation if name in names.generation_options(source)]
    if dict(options).get("reward", "coverage") != "coverage":
        options.append(("feedback", feedback()))
    return tuple(word for name, value in options for word in (f"--{name}", value))
