"""Options that several commands have, and their checks."""

from __future__ import annotations

from collections.abc import Iterable

import click

from bot.errors import UsageError
from fuzzing import backends

option_option = click.option(
    "--option",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the backend; may be repeated. `assay doctor` lists them.",
)


def parse_options(given: Iterable[str]) -> dict[str, str]:
    """Options by name, from `name=value` texts; raises UsageError."""
    options: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--option {text}: write NAME=VALUE, such as optimization=basic")
        if name in options:
            raise UsageError(f"--option {name} is given twice; keep one")
        options[name] = value
    return options


def split_names(given: Iterable[str]) -> list[str]:
    """The names in `given`, each of which may hold several with commas between, once each."""
    return list(dict.fromkeys(name.strip() for text in given for name in text.split(",") if name.strip()))


def check_device(backend: str, device: str) -> None:
    """Raises UsageError where the backend has no such device: said before any work is done."""
    devices = backends.get(backend).devices
    if device not in devices:
        raise UsageError(f"--device {device}: {backend} has no such device; it has {', '.join(devices)}")
