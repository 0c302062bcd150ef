"""Options that several commands have, and their checks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from bot.config import RepositoryConfig
from bot.config.names import check_profile_name
from bot.config.parser import list_errors
from bot.errors import UsageError
from fuzzing import backends
from fuzzing.cases.programs import get_kind
from fuzzing.oracles.tolerance_profiles import DEFAULT

corpus_option = click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    help="Corpus that CASE is looked up in. [default: the service's]",
)
data_set_option = click.option(
    "--data-set",
    type=click.IntRange(0),
    metavar="N",
    help="Use the data in test_data_set_N of a model with several.",
)
python_option = click.option(
    "--python", default=sys.executable, help="Interpreter with the compiler installed. [default: Assay's own]"
)
workers_option = click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1), help="Number of parallel workers."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
option_option = click.option(
    "--option",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the backend; may be repeated. `assay doctor` lists them.",
)
device_option = click.option("--device", help="Device to compile for. [default: the backend's first]")
profile_option = click.option(
    "--profile", default=DEFAULT, show_default=True, help="Tolerance profile of the oracle."
)
_CONFIGURATION = (device_option, option_option, profile_option)
_BACKEND = click.option(
    "--backend", "--library", "backend", required=True, help="Compiler or library to test."
)
_SELECTION = (
    click.option(
        "--frontend", help="Frontend to test: onnx, torch, keras. [default: whichever the cases need]"
    ),
    click.option(
        "--source",
        "sources",
        multiple=True,
        help="Source of cases; comma-separated or repeated. [default: the tests of the frontend's library]",
    ),
    click.option(
        "--cases",
        type=click.Path(path_type=Path, exists=True),
        help="Run the cases of this corpus folder instead, or ONNX models: a file or a folder.",
    ),
    click.option(
        "--strategy", help="Strategy that orders the cases. [default: change if it is known, else opera]"
    ),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: adds the options that select and order cases; see `select_configuration`."""
    return _add_options((_BACKEND, *_SELECTION), command)


def case_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the same without `--backend`."""
    return _add_options(_SELECTION, command)


def configuration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: adds the options that configure a backend; see `configure_backend`."""
    return _add_options(_CONFIGURATION, command)


def _add_options(options: Sequence[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def select_configuration(
    backend: str,
    frontend: str | None,
    sources: Iterable[str],
    cases: Path | None,
    strategy: str | None,
    as_written: Mapping[str, str] | None = None,
    **other_settings: Any,
) -> RepositoryConfig:
    """The configuration for these options and `other_settings`; None keeps a default.

    `as_written` as for `validate_configuration`. Raises UsageError, also if no source has cases.
    """
    named = split_names(sources)
    if cases is not None and named:
        raise UsageError("--cases and --source exclude each other; keep one")
    given = {"frontend": frontend, "sources": named or None, "strategy": strategy} | other_settings
    known = {name: value for name, value in given.items() if value is not None}
    config = validate_configuration({"backend": backend} | known, as_written)
    if not config.sources and cases is None:
        raise UsageError(f"no source has cases for {frontend or backend} yet; name a corpus with --cases")
    return config


@dataclass(frozen=True)
class ConfiguredBackend:
    """A backend and its settings.

    name     as given: a registered name or a file
    options  those that are not the default
    """

    name: str
    backend: type[backends.Backend]
    device: str
    options: dict[str, str]
    profile: str


def configure_backend(name: str, device: str | None, given: Iterable[str], profile: str) -> ConfiguredBackend:
    """Checks --backend, --device, --option and --profile; raises UsageError."""
    check_profile(profile)
    backend = backends.get(name)
    options = backend.non_default_options(parse_options(given))
    if device is not None:
        check_device(name, device)
    return ConfiguredBackend(name, backend, device or backend.devices[0], options, profile)


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
    """The distinct names in `given`, whose items may be comma-separated lists."""
    return list(dict.fromkeys(name.strip() for text in given for name in text.split(",") if name.strip()))


def check_profile(name: str) -> None:
    """Raises UsageError with a suggestion if there is no such tolerance profile."""
    try:
        check_profile_name(name)
    except ValueError as error:
        raise UsageError(f"--profile {name}: {error}") from None


def check_device(backend: str, device: str) -> None:
    """Raises UsageError if the backend has no such device."""
    devices = backends.get(backend).devices
    if device not in devices:
        raise UsageError(f"--device {device}: {backend} has no such device; choose from {', '.join(devices)}")


def compatible_backends(kind: str, names: Sequence[str], device: str | None) -> list[str]:
    """The named compilers, or all that take programs of a kind and have the device.

    Raises UsageError if a named compiler does not take them or lacks the device.
    """
    for name in names:
        backend = backends.get(name)
        if kind not in backend.kinds:
            raise UsageError(f"--backend {name}: takes {', '.join(backend.kinds)}, not {kind}")
        if device is not None:
            check_device(name, device)
    known = [(name, backends.get(name)) for name in backends.compilers()]
    return list(names) or [
        name for name, backend in known if kind in backend.kinds and device in (None, *backend.devices)
    ]


def validate_configuration(
    given: Mapping[str, Any], as_written: Mapping[str, str] | None = None
) -> RepositoryConfig:
    """The configuration for these options; `as_written` maps some options to the text that was typed.

    Raises UsageError that names each wrong option.
    """
    kind = backends.get(given["backend"])
    if kind.reference:
        raise UsageError(
            f"--backend {kind.name}: it is a reference that compilers are compared with, not a compiler; "
            f"choose from {', '.join(backends.compilers())}"
        )
    try:
        return RepositoryConfig.model_validate({"version": 1} | dict(given))
    except ValidationError as error:
        problems = []
        for item in list_errors(error):
            flag, *rest = map(str, item["loc"])
            flag = {"sources": "source", "options": "option", "toolchain": "with"}.get(flag, flag)
            context = item.get("ctx", {})
            why = context.get("why") or context.get("error") or item["msg"]
            name = rest[0] if rest and flag == "option" else (as_written or {}).get(flag, item["input"])
            problems.append(f"--{flag} {name}: {why}")
        raise UsageError("; ".join(problems)) from None


def program_kinds(config: RepositoryConfig) -> list[str]:
    """The program kinds of the frontend, or all that the backend takes."""
    kinds = backends.get(config.backend).kinds
    return [kind for kind in kinds if config.frontend in (None, get_kind(kind).frontend)]
