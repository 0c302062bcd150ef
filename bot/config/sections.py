"""The sections of `.github/assay.yml`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from bot.config.cron import parse_triggers
from bot.config.names import check_provisioner_name, check_signer, check_source_name, check_writer_name
from bot.config.units import Duration, Size


def exact_pin(requirement: Requirement) -> str | None:
    """The version of a requirement `name==version`; None for any other form."""
    specifiers = list(requirement.specifier)
    if requirement.url or len(specifiers) != 1 or specifiers[0].operator != "==":
        return None
    try:
        return str(Version(specifiers[0].version))
    except ValueError:  # 2024.0.*, or more digits than Python converts
        return None


def _pinned(text: str) -> str:
    # The text is untrusted: no options, no URLs, nothing that is built.
    try:
        requirement = Requirement(text)
    except (ValueError, RecursionError):
        raise ValueError("is not a requirement; write name==version, such as numpy==1.26.4") from None
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
    except (ValueError, RecursionError):
        raise ValueError(_NO_PROJECT) from None
    if requirement.name != text:
        raise ValueError(_NO_PROJECT)
    return text


def _version(text: Any) -> str:
    # YAML reads 0.26 as a number; 0.10 would lose its zero.
    if not isinstance(text, str):
        raise PydanticCustomError("refused", "{why}", {"why": "must be text; put it in quotation marks"})
    try:
        return str(Version(text))
    except ValueError:
        raise ValueError("must be a version, such as 0.26.0") from None


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("must be an http(s) address without a password")
    return text.rstrip("/")


def _template(text: str) -> str:
    if "{sha}" not in text:
        raise ValueError("must contain {sha}, which stands for the commit's id")
    return _address(text)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _comment(text: str) -> str:
    if any(line and not line.startswith("#") for line in text.splitlines()):
        raise ValueError("must be a comment: each line begins with #")
    return text.rstrip()


def _cron(text: str) -> str:
    try:
        parse_triggers(text)
    except ValueError as error:
        raise ValueError(f"is not a cron line: {error}; write five fields, such as 0 3 * * *") from None
    return text


Text = Annotated[str, Field(min_length=1, max_length=200)]
Path = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_relative)]
Project = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_project)]
Release = Annotated[str, BeforeValidator(_version)]
Pinned = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_pinned)]
Cron = Annotated[str, Field(max_length=100), AfterValidator(_cron)]
Address = Annotated[str, Field(max_length=1000), AfterValidator(_address)]
UrlTemplate = Annotated[str, Field(max_length=1000), AfterValidator(_template)]
Command = Annotated[str, Field(min_length=1, max_length=2000)]


class Section(BaseModel):
    """Base of all sections: no unknown keys, no conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LimitsConfig(Section):
    """`limits`: time, memory and file size of one case; a missing key keeps Assay's own limit."""

    import_: Duration | None = Field(
        None, alias="import", description="Starting the compiler.", examples=["2m"]
    )
    convert: Duration | None = Field(None, description="Loading one model.", examples=["60s"])
    compile: Duration | None = Field(None, description="Compiling one model.", examples=["60s"])
    run: Duration | None = Field(None, description="Running one compiled model.", examples=["30s"])
    memory: Size | None = Field(None, description="Memory of one worker.", examples=["4GiB"])
    file: Size | None = Field(None, description="Largest file that a case may write.", examples=["1GiB"])

    def overrides(self) -> dict[str, float | int]:
        """The given limits, by the names of `fuzzing.execute.limits.Limits`."""
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


class ArtifactConfig(Section):
    """`toolchain.artifact`: the wheel that the repository's own CI built for a commit."""

    workflow: Text | None = Field(
        None,
        description="The workflow of GitHub Actions that builds it; the App needs `actions: read`.",
        examples=["wheels.yml"],
    )
    name: Text = Field(
        "*wheel*", description="The artifact's name; `*` stands for any text.", examples=["wheel-linux-*"]
    )
    url: UrlTemplate | None = Field(
        None,
        description="Where the wheel lies instead; the operator must have allowed the address.",
        examples=["https://builds.example.org/{sha}/openvino-2026.4.0-py3-none-any.whl"],
    )
    wheel: Text = Field("*.whl", description="The wheel's file name.", examples=["*-cp311-*x86_64.whl"])
    wait: Duration = Field(3600.0, description="Longest time to wait for the build.", examples=["90m"])


class BuildConfig(Section):
    """`toolchain.build`: how `source` builds a commit, in the sandbox and without a network."""

    requirements: list[Pinned] = Field(
        default_factory=list,
        max_length=40,
        description="Packages that the commands need, installed before them.",
        examples=[["setuptools==80.9.0", "ninja==1.13.0"]],
    )
    commands: list[Command] = Field(
        default_factory=list,
        max_length=20,
        description="Commands that make the wheel, one after another, in the commit's files.",
        examples=[["python -m pip wheel --no-deps --no-build-isolation -w dist ."]],
    )
    wheel: Path = Field(
        "dist/*.whl", description="Where the wheel lies then.", examples=["python/dist/*.whl"]
    )
    sources: list[Path] = Field(
        default_factory=list,
        max_length=40,
        description="Files and folders that the wheel depends on. Default: all.",
        examples=[["src", "python", "CMakeLists.txt"]],
    )
    time: Duration = Field(3600.0, description="Time for all commands together.", examples=["1h"])
    memory: Size = Field(8 << 30, description="Memory of each process.", examples=["8GiB"])


class ToolchainConfig(Section):
    """`toolchain`: how to make a runnable build of the compiler at a commit."""

    provisioner: Annotated[
        list[Annotated[str, AfterValidator(check_provisioner_name)]], BeforeValidator(_as_list)
    ] = Field(
        default_factory=lambda: ["release"],
        min_length=1,
        max_length=10,
        description="How a toolchain is made: `release` installs the pinned release; `overlay` lays a "
        "compiler's own sources over a wheel; `index` installs the last nightly wheel before the commit, "
        "`artifact` the one that CI built, `source` builds it. Of several, the first that can.",
        examples=[["overlay", "release"]],
    )
    wheel: Release | None = Field(
        None,
        description="The release under the sources of an `overlay`. Default: the nearest.",
        examples=["0.26.0"],
    )
    package: Project | None = Field(
        None,
        description="The compiler's package. Default: the backend's own.",
        examples=["openvino"],
    )
    pin: Path = Field(
        "requirements.txt",
        description="The file that pins the package: a requirements.txt or a pyproject.toml.",
        examples=["ci/requirements.txt"],
    )
    extra: list[Pinned] = Field(
        default_factory=list,
        max_length=20,
        description="Further packages, each pinned exactly.",
        examples=[["numpy==1.26.4"]],
    )
    index: Address | None = Field(
        None,
        description="The simple index of `index`; the operator must have allowed it.",
        examples=["https://nightly.example.org/simple"],
    )
    artifact: ArtifactConfig = Field(default_factory=ArtifactConfig)
    build: BuildConfig = Field(default_factory=BuildConfig)


class ProposalsConfig(Section):
    """`proposals`: regression tests as draft pull requests, on `/assay propose`."""

    enabled: bool = Field(
        False, description="Whether tests may be proposed; the App needs `contents: write`.", examples=[True]
    )
    coverage: bool = Field(
        False,
        description="Whether a campaign of `schedules` offers tests from passing cases that cover what the "
        "repository's own tests leave out.",
        examples=[True],
    )
    open: int = Field(1, ge=1, le=10, description="Open pull requests with tests, at most.", examples=[1])
    writer: Annotated[str, AfterValidator(check_writer_name)] | None = Field(
        None,
        description="The suite of the tests. Default: the one whose files exist.",
        examples=["pytest-function"],
    )
    path: Path = Field(
        "tests/test_compiler_regressions.py",
        description="The file for tests of the writer `pytest-function`.",
        examples=["tests/test_bugs.py"],
    )
    header: Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_comment)] | None = Field(
        None, description="The comment at the top of that file.", examples=["# SPDX-License-Identifier: MIT"]
    )
    sign_off: Annotated[str, AfterValidator(check_signer)] | None = Field(
        None,
        description="The author of the commits, who signs them off (DCO). Default: the App, without.",
        examples=["Ada L <ada@example.org>"],
    )


class ReportsConfig(Section):
    """`reports`: what is published on GitHub, and how often."""

    mode: Literal["dry-run", "held", "auto"] = Field(
        "dry-run",
        description="`dry-run` writes reports to files only, `held` waits for a maintainer's approval of "
        "each, `auto` files them.",
        examples=["held"],
    )
    issues_per_day: int = Field(2, ge=0, le=100, description="New issues a day, at most.", examples=[2])
    labels: list[Text] = Field(
        default_factory=lambda: ["assay"],
        max_length=10,
        description="Labels of Assay's issues, created if missing.",
        examples=[["assay", "bug"]],
    )
    close: bool = Field(
        True, description="Whether Assay closes its issues after a verified fix.", examples=[False]
    )
    bisect: Literal["auto", "manual"] = Field(
        "auto",
        description="`auto` searches the first bad release of each filed bug, in a compiler's own "
        "repository the commit, for at most `budget`, and posts it in the issue; `manual` waits for "
        "`/assay bisect`.",
        examples=["manual"],
    )


class PullRequestsConfig(Section):
    """`pull_requests`: how pull requests are tested."""

    test: bool = Field(True, description="Whether pull requests are tested.", examples=[False])
    drafts: bool = Field(False, description="Whether drafts are tested too.", examples=[True])
    comment: bool = Field(
        True,
        description="Whether a comment lists new bugs; the check run always does.",
        examples=[False],
    )
    gate: bool = Field(
        False,
        description="Whether a regression fails the check; otherwise the check is neutral.",
        examples=[True],
    )
    budget: Duration | None = Field(
        None, description="Time a pull request's campaign may run tests. Default: `budget`.", examples=["2m"]
    )


class ReductionConfig(Section):
    """`reduction`: the effort for reducing failing cases."""

    budget: Duration = Field(120.0, description="Time for one failing case.", examples=["2m"])
    cases: int = Field(
        20,
        ge=0,
        le=1000,
        description="Most failing cases that a campaign reduces; 0 for none.",
        examples=[20],
    )


class ScheduleConfig(Section):
    """One of `schedules`: campaigns on the default branch at fixed times."""

    cron: Cron = Field(description="When, as a cron line in UTC.", examples=["0 3 * * *"])
    budget: Duration | None = Field(
        None, description="Time it may run tests. Default: `budget`.", examples=["1h"]
    )
    sources: list[Annotated[str, AfterValidator(check_source_name)]] | None = Field(
        None, max_length=20, description="Where its cases come from. Default: `sources`.", examples=[["isra"]]
    )
