"""Write a commented .github/assay.yml for a repository."""

from __future__ import annotations

from pathlib import Path

import click

from bot.cli.exits import Exit
from bot.config import RepositoryConfig
from bot.config.defaults import default_config
from bot.config.parser import CONFIG_PATH
from bot.config.units import show_duration
from bot.errors import UsageError
from bot.terminal import echo

_TEXT = """\
# What Assay does without this file, for you to change. docs/configuration.md lists every key.
version: 1

# The compiler under test, and the part of it whose cases run.
backend: {backend}
{frontend}
# Where the cases come from.
sources: [{sources}]

# How long one campaign runs cases; base may take as long again.
budget: {budget}

# Pushes to these branches are tested; by default those to the default branch.
# branches: [main, "releases/*"]

toolchain:
  # How a commit becomes a toolchain. The first in the list that can make it wins.
{toolchain}
reports:
  # dry-run writes reports to files only; held waits for a maintainer's approval; auto publishes.
  mode: {mode}
"""
_OVERLAY = """\
  # overlay: the commit's Python sources over the wheel of the nearest release; or of `wheel`.
  provisioner: [{provisioner}]
  # wheel: "1.2.3"
"""
_RELEASE = """\
  # release: what this file pins exactly.
  provisioner: [{provisioner}]
  pin: {pin}
"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option("--write", is_flag=True, help=f"Write {CONFIG_PATH} in place of printing it.")
def command(folder: Path, write: bool) -> Exit:
    """Print a commented configuration for the repository in FOLDER.

    A known compiler's own repository is recognized by its files, another by the compiler that it pins. The
    configuration describes what Assay does without one.
    """
    place = folder / CONFIG_PATH
    if place.exists():
        raise UsageError(f"{place} exists; edit it, or delete it first")
    text = render(_configuration(folder))
    if not write:
        echo(text, nl=False)
        return Exit.OK
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    echo(f"wrote {place}", err=True)
    return Exit.OK


def render(config: RepositoryConfig) -> str:
    """The file, with comments."""
    toolchain = config.toolchain
    text = _OVERLAY if "overlay" in toolchain.provisioner else _RELEASE
    return _TEXT.format(
        backend=config.backend,
        frontend=f"frontend: {config.frontend}\n" if config.frontend else "",
        sources=", ".join(config.sources),
        budget=show_duration(config.budget),
        toolchain=text.format(provisioner=", ".join(toolchain.provisioner), pin=toolchain.pin),
        mode=config.reports.mode,
    )


def _configuration(folder: Path) -> RepositoryConfig:
    def read(path: str) -> bytes | None:
        file = folder / path
        return file.read_bytes() if file.is_file() else None

    config = default_config(read)
    if config is None:
        raise UsageError(
            f"{folder} is no known compiler's repository, and neither requirements.txt nor pyproject.toml "
            "pins one exactly; add a pin, such as onnxruntime==1.24.1"
        )
    return config
