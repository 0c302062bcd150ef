"""Options that several commands have, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click
from pydantic import ValidationError

from bot.config import RepositoryConfig
from bot.config.parse import mistakes
from bot.errors import UsageError
from fuzzing import backends
from fuzzing.cases.programs import kind_named

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


def checked(given: Mapping[str, Any], typed: Mapping[str, str] | None = None) -> RepositoryConfig:
    """The configuration that options amount to; `typed` is how some of its values were written.

    Raises UsageError that names each option at fault.
    """
    kind = backends.get(given["backend"])
    if kind.reference:
        raise UsageError(f"{kind.name} is the reference, not a compiler: {', '.join(backends.compilers())}")
    try:
        return RepositoryConfig.model_validate({"version": 1} | dict(given))
    except ValidationError as error:
        problems = []
        for item in mistakes(error):
            flag, *rest = map(str, item["loc"])
            flag = {"sources": "source", "options": "option"}.get(flag, flag)
            context = item.get("ctx", {})
            why = context.get("why") or context.get("error") or item["msg"]
            name = rest[0] if rest and flag == "option" else (typed or {}).get(flag, item["input"])
            problems.append(f"--{flag} {name}: {why}")
        raise UsageError("; ".join(problems)) from None


def program_kinds(config: RepositoryConfig) -> list[str]:
    """The program kinds wanted: those of the frontend, or all the backend takes."""
    kinds = backends.get(config.backend).kinds
    return [kind for kind in kinds if config.frontend in (None, kind_named(kind).frontend)]
