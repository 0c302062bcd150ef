"""What a repository may say in `.github/assay.yml`, and what holds where it says nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from bot.config import names
from bot.config.names import backend_name, profile_name, provisioner_name, source_name, strategy_name
from bot.config.units import FROM_FILE, Duration, Size
from fuzzing import backends

DEFAULT_BUDGET_S = 300.0  # the whole of ONNX's node tests on two releases takes less on two cores
DEFAULT_REPEATS = 3  # fresh runs behind an accusation; syzbot, too, asks for three that reproduce


def exact_pin(requirement: Requirement) -> str | None:
    """The version of a requirement written `name==version`; None for any looser one, or a URL."""
    specifiers = list(requirement.specifier)
    if requirement.url or len(specifiers) != 1 or specifiers[0].operator != "==":
        return None
    try:
        return str(Version(specifiers[0].version))
    except InvalidVersion:  # 2024.0.*
        return None


def _pinned(text: str) -> str:
    # The text comes from a repository anyone may write to: no options, no URLs, nothing to be built.
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise ValueError("is no requirement; write name==version, such as numpy==1.26.4") from None
    if exact_pin(requirement) is None:
        raise ValueError("must be pinned exactly and come from the index: write name==version")
    return str(requirement)


def _relative(text: str) -> str:
    parts = text.split("/")
    if text.startswith("/") or any(part in ("", ".", "..") for part in parts) or not text.isprintable():
        raise ValueError("must be the path of a file in this repository, such as requirements.txt")
    return text


_NO_PROJECT = "must be the name of a package on the index, without a version"


def _project(text: str) -> str:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise ValueError(_NO_PROJECT) from None
    if requirement.name != text:
        raise ValueError(_NO_PROJECT)
    return text


def _option(value: Any) -> Any:
    """What YAML reads as a truth value or a number is an option's text all the same."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


Text = Annotated[str, Field(min_length=1, max_length=200)]
Option = Annotated[str, BeforeValidator(_option), Field(min_length=1, max_length=200)]
Glob = Annotated[str, Field(min_length=1, max_length=200)]
Path = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_relative)]
Project = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_project)]
Pinned = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_pinned)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LimitsConfig(_Section):
    """`limits`: how long and how large one case may become; what is left out keeps Assay's own limit."""

    import_: Duration | None = Field(
        None, alias="import", description="Starting the compiler.", examples=["2m"]
    )
    convert: Duration | None = Field(None, description="Loading one model.", examples=["60s"])
    compile: Duration | None = Field(None, description="Compiling one model.", examples=["2m"])
    run: Duration | None = Field(None, description="Running one compiled model.", examples=["30s"])
    memory: Size | None = Field(None, description="Memory of one worker.", examples=["4GiB"])
    file: Size | None = Field(None, description="The largest file a case may write.", examples=["1GiB"])

    def overrides(self) -> dict[str, float | int]:
        """The limits set here, under the names that `fuzzing.execute.limits.Limits` uses."""
        names = {
            "import_": "import_s",
            "convert": "convert_s",
            "compile": "compile_s",
            "run": "run_s",
            "memory": "memory_bytes",
            "file": "file_bytes",
        }
        values = self.model_dump(exclude_none=True)
        return {names[key]: value for key, value in values.items()}


class ToolchainConfig(_Section):
    """`toolchain`: how to get a runnable build of the compiler at a commit."""

    provisioner: Annotated[str, AfterValidator(provisioner_name)] = Field(
        "release", description="How a toolchain is made.", examples=["release"]
    )
    package: Project | None = Field(
        None,
        description="The package that holds the compiler. Default: the backend's own.",
        examples=["openvino"],
    )
    pin: Path = Field(
        "requirements.txt",
        description="The file that pins the package, in the style of requirements.txt or pyproject.toml.",
        examples=["ci/requirements.txt"],
    )
    extra: list[Pinned] = Field(
        default_factory=list,
        max_length=20,
        description="Further packages the compiler needs, each pinned exactly.",
        examples=[["numpy==1.26.4"]],
    )


class ReportsConfig(_Section):
    """`reports`: what may be said on GitHub, and how often."""

    mode: Literal["dry-run", "held", "auto"] = Field(
        "dry-run",
        description="`dry-run` writes reports to files only, `held` waits for a maintainer to release each, "
        "`auto` files them.",
        examples=["held"],
    )
    issues_per_day: int = Field(2, ge=0, le=100, description="New issues a day, at most.", examples=[2])


#: One mistake inside a field: "unknown_name" if the key is at fault, else "refused"; path, value, message.
_Wrong = tuple[Literal["unknown_name", "refused"], tuple[str | int, ...], Any, str]


def _frontends(known: dict[str, Any]) -> tuple[str, ...]:
    """The frontends whose cases are wanted, with what is known of a configuration so far."""
    if known.get("frontend"):
        return (known["frontend"],)
    return names.frontends(known["backend"]) if "backend" in known else names.all_frontends()


def _default_sources(known: dict[str, Any]) -> list[str]:
    return list(names.default_sources(_frontends(known)[0]))


def _devices(known: dict[str, Any]) -> tuple[str, ...]:
    return backends.get(known["backend"]).devices if "backend" in known else ("CPU",)


def _refuse(title: str, problems: Iterable[_Wrong]) -> None:
    """Raises a ValidationError for each problem, if there is any."""
    details = [
        InitErrorDetails(type=PydanticCustomError(kind, "{why}", {"why": why}), loc=path, input=value)
        for kind, path, value, why in problems
    ]
    if details:
        raise ValidationError.from_exception_data(title, details)


class RepositoryConfig(_Section):
    """All of `.github/assay.yml`."""

    version: Literal[1] = Field(description="The version of this file's format.", examples=[1])
    backend: Annotated[str, AfterValidator(backend_name)] = Field(
        description="The compiler under test.", examples=["openvino"]
    )
    frontend: Text | None = Field(
        None,
        description="The part of the compiler under test, by the library whose models it loads. "
        "Default: whatever the sources need.",
        examples=["onnx"],
    )
    sources: list[Annotated[str, AfterValidator(source_name)]] = Field(
        default_factory=_default_sources,
        max_length=20,
        validate_default=True,
        description="Where test cases come from. Default: the tests of the frontend's own library.",
        examples=[["onnx-node-tests"]],
    )
    strategy: Annotated[str, AfterValidator(strategy_name)] | None = Field(
        None,
        description="What decides which cases run first. Default: `change` where there is a base or a "
        "history, else `opera`.",
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
        description="How the compiler is set, by option; `assay doctor` lists each backend's.",
        examples=[{"precision": "f16"}],
    )
    profile: Annotated[Text, AfterValidator(profile_name)] = Field(
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
    reports: ReportsConfig = Field(default_factory=ReportsConfig)

    @field_validator("frontend")
    @classmethod
    def _frontend(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and "backend" in info.data:
            names.frontend_name(value, info.data["backend"])
        return value

    @field_validator("sources")
    @classmethod
    def _sources(cls, value: list[str], info: ValidationInfo) -> list[str]:
        """What `assay run --cases` stores may name none; a file must, where the frontend has no default."""
        wanted = _frontends(info.data)
        if not value and info.context == FROM_FILE:
            raise ValueError(f"must be given: no source is the default for {' or '.join(wanted)}")
        libraries = names.source_libraries()
        wrong = {
            at: f"{source!r} has {libraries[source]} cases, and {' and '.join(wanted)} cases are wanted"
            for at, source in enumerate(value)
            if libraries[source] in names.all_frontends() and libraries[source] not in wanted
        }
        _refuse("sources", [("refused", (at,), value[at], message) for at, message in wrong.items()])
        return value

    @field_validator("device")
    @classmethod
    def _device(cls, value: str, info: ValidationInfo) -> str:
        return names.device_name(value, info.data["backend"]) if "backend" in info.data else value

    @field_validator("options")
    @classmethod
    def _options(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        """Those that are not the default, so that one configuration has one name in the verdict cache."""
        if "backend" not in info.data:
            return value
        backend = backends.get(info.data["backend"])
        wrong: list[_Wrong] = []
        for name, given in value.items():
            if name not in backend.options:
                why = f"is no option of {backend.name}; {names.meant(name, backend.options)}"
                wrong.append(("unknown_name", (name,), given, why))
            elif given not in backend.options[name]:
                why = f"cannot be {given[:50]!r}; {names.meant(given, backend.options[name])}"
                wrong.append(("refused", (name,), given, why))
        _refuse("options", wrong)
        return {name: given for name, given in sorted(value.items()) if given != backend.options[name][0]}

    def to_json(self) -> dict[str, Any]:
        """The configuration as JSON, durations in seconds and sizes in bytes."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> RepositoryConfig:
        """The inverse of `to_json`, for what Assay stored itself; raises pydantic's ValidationError."""
        return cls.model_validate(obj)
