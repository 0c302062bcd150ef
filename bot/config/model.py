"""What a repository may say in `.github/assay.yml`, and what holds where it says nothing."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bot.config.names import backend_name, provisioner_name, source_name
from bot.config.units import Duration, Size

DEFAULT_SOURCES = ("onnx-node-tests",)
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


Text = Annotated[str, Field(min_length=1, max_length=200)]
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


class RepositoryConfig(_Section):
    """All of `.github/assay.yml`."""

    version: Literal[1] = Field(description="The version of this file's format.", examples=[1])
    backend: Annotated[str, AfterValidator(backend_name)] = Field(
        description="The compiler under test.", examples=["openvino"]
    )
    sources: list[Annotated[str, AfterValidator(source_name)]] = Field(
        default_factory=lambda: list(DEFAULT_SOURCES),
        min_length=1,
        max_length=20,
        description="Where test cases come from.",
        examples=[["onnx-node-tests"]],
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
    device: Text = Field("CPU", description="The device that runs compiled models.", examples=["CPU"])
    profile: Text = Field(
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

    def to_json(self) -> dict[str, Any]:
        """The configuration as JSON, durations in seconds and sizes in bytes."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> RepositoryConfig:
        """The inverse of `to_json`, for what Assay stored itself; raises pydantic's ValidationError."""
        return cls.model_validate(obj)
