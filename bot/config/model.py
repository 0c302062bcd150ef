"""The model of `.github/assay.yml` with its defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from bot.config import names
from bot.config.names import check_backend_name, check_profile_name, check_source_name, check_strategy_name
from bot.config.sections import (
    LimitsConfig,
    ProposalsConfig,
    PullRequestsConfig,
    ReductionConfig,
    ReportsConfig,
    ScheduleConfig,
    Section,
    Text,
    ToolchainConfig,
)
from bot.config.units import FROM_FILE, Duration
from bot.errors import ConfigError
from fuzzing import backends

DEFAULT_BUDGET_S = 300.0  # the whole of ONNX's node tests on two releases takes less on two cores
DEFAULT_REPEATS = 3  # fresh runs that confirm a failure; syzbot, too, requires three


def _option(value: Any) -> Any:
    """The text of an option that YAML reads as a boolean or a number."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


Option = Annotated[str, BeforeValidator(_option), Field(min_length=1, max_length=200)]
Glob = Annotated[str, Field(min_length=1, max_length=200)]
ScheduleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


#: A mistake in a field: "unknown_name" for a wrong key, else "refused"; path, value, message.
_FieldError = tuple[Literal["unknown_name", "refused"], tuple[str | int, ...], Any, str]


def _frontends(known: dict[str, Any]) -> tuple[str, ...]:
    """The frontends whose cases are tested, by the fields validated so far."""
    if known.get("frontend"):
        return (known["frontend"],)
    return names.frontends(known["backend"]) if "backend" in known else names.all_frontends()


def _default_sources(known: dict[str, Any]) -> list[str]:
    return list(names.default_sources(_frontends(known)[0]))


def _devices(known: dict[str, Any]) -> tuple[str, ...]:
    return backends.get(known["backend"]).devices if "backend" in known else ("CPU",)


def _raise_errors(title: str, problems: Iterable[_FieldError]) -> None:
    """Raises a ValidationError for each problem, if there is any."""
    details = [
        InitErrorDetails(type=PydanticCustomError(kind, "{why}", {"why": why}), loc=path, input=value)
        for kind, path, value, why in problems
    ]
    if details:
        raise ValidationError.from_exception_data(title, details)


#: Fields that depend on the backend.
_BACKEND_FIELDS = frozenset({"frontend", "sources", "strategy", "device", "options", "toolchain"})


class RepositoryConfig(Section):
    """All of `.github/assay.yml`."""

    version: Literal[1] = Field(description="The version of this file's format.", examples=[1])
    backend: Annotated[str, AfterValidator(check_backend_name)] = Field(
        description="The compiler under test.", examples=["openvino"]
    )
    frontend: Text | None = Field(
        None,
        description="The part of the compiler under test, by the library whose models it loads. "
        "Default: whatever the sources need.",
        examples=["onnx"],
    )
    sources: list[Annotated[str, AfterValidator(check_source_name)]] = Field(
        default_factory=_default_sources,
        max_length=20,
        validate_default=True,
        description="Where test cases come from. Default: the tests of the frontend's own library.",
        examples=[["onnx-node-tests"]],
    )
    strategy: Annotated[str, AfterValidator(check_strategy_name)] | None = Field(
        None,
        description="The order of cases. Default: `change` with a base or a history, else `opera`.",
        examples=["change"],
    )
    budget: Duration = Field(
        DEFAULT_BUDGET_S, description="Time one campaign may run tests.", examples=["5m"]
    )
    branches: list[Glob] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Branches whose pushes are tested, as patterns. Default: the default branch only.",
        examples=[["main", "releases/*"]],
    )
    device: Text = Field(
        default_factory=lambda known: _devices(known)[0],
        description="The device that runs compiled models. Default: the backend's first.",
        examples=["CPU"],
    )
    options: dict[str, Option] = Field(
        default_factory=dict,
        max_length=20,
        description="Options of the compiler; `assay doctor` lists each backend's.",
        examples=[{"precision": "f16"}],
    )
    profile: Annotated[Text, AfterValidator(check_profile_name)] = Field(
        "default", description="The tolerance profile that judges numerical results.", examples=["default"]
    )
    repeats: int = Field(
        DEFAULT_REPEATS,
        ge=1,
        le=20,
        description="Runs in fresh processes before a failure counts.",
        examples=[3],
    )
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    toolchain: ToolchainConfig = Field(default_factory=ToolchainConfig)
    pull_requests: PullRequestsConfig = Field(default_factory=PullRequestsConfig)
    reduction: ReductionConfig = Field(default_factory=ReductionConfig)
    schedules: dict[ScheduleName, ScheduleConfig] = Field(
        default_factory=dict,
        max_length=10,
        description="Campaigns at fixed times, by name.",
        examples=[{"nightly": {"cron": "0 3 * * *", "budget": "1h"}}],
    )
    reports: ReportsConfig = Field(default_factory=ReportsConfig)
    proposals: ProposalsConfig = Field(default_factory=ProposalsConfig)

    @field_validator("frontend")
    @classmethod
    def _frontend(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and "backend" in info.data:
            names.check_frontend_name(value, info.data["backend"])
        return value

    @field_validator("sources")
    @classmethod
    def _sources(cls, value: list[str], info: ValidationInfo) -> list[str]:
        """Checks the libraries. Only stored configurations (`assay run --cases`) may name no source."""
        wanted = _frontends(info.data)
        if not value and info.context == FROM_FILE:
            raise ValueError(f"must be given: there is no default source for {' or '.join(wanted)}")
        libraries = names.source_libraries()
        wrong = {
            at: f"{source!r} has {libraries[source]} cases; {' and '.join(wanted)} cases are needed"
            for at, source in enumerate(value)
            if libraries[source] in names.all_frontends() and libraries[source] not in wanted
        }
        _raise_errors("sources", [("refused", (at,), value[at], message) for at, message in wrong.items()])
        return value

    @field_validator("device")
    @classmethod
    def _device(cls, value: str, info: ValidationInfo) -> str:
        return names.check_device_name(value, info.data["backend"]) if "backend" in info.data else value

    @field_validator("options")
    @classmethod
    def _options(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        """Drops defaults, so that equal configurations have one name in the verdict cache."""
        if "backend" not in info.data:
            return value
        backend = backends.get(info.data["backend"])
        wrong: list[_FieldError] = []
        for name, given in value.items():
            if name not in backend.options:
                why = f"is not an option of {backend.name}; {names.suggestion(name, backend.options)}"
                wrong.append(("unknown_name", (name,), given, why))
            elif given not in backend.options[name]:
                why = f"cannot be {given[:50]!r}; {names.suggestion(given, backend.options[name])}"
                wrong.append(("refused", (name,), given, why))
        _raise_errors("options", wrong)
        return {name: given for name, given in sorted(value.items()) if given != backend.options[name][0]}

    def with_overrides(self, changes: Mapping[str, Any]) -> RepositoryConfig:
        """The configuration with changed fields. A changed backend resets the fields that depend on it.

        Raises ConfigError if the fields contradict each other.
        """
        kept = self.to_json()
        if changes.get("backend", self.backend) != self.backend:
            kept = {name: value for name, value in kept.items() if name not in _BACKEND_FIELDS}
        try:
            return RepositoryConfig.model_validate(kept | dict(changes))
        except ValidationError as error:
            details = "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}" for one in error.errors())
            raise ConfigError(details) from None

    def to_json(self) -> dict[str, Any]:
        """The configuration as JSON, durations in seconds and sizes in bytes."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> RepositoryConfig:
        """The inverse of `to_json`, for what Assay stored itself; raises pydantic's ValidationError."""
        return cls.model_validate(obj)
