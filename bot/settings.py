"""Settings of a service: `ASSAY_*` variables, over a TOML file, over the defaults below.

The file is that of `ASSAY_CONFIG`, or `./assay.toml` if it exists; its keys are the names of the fields. All
errors are reported in one `SettingsError` with variable, value (never of a secret) and allowed values.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from platformdirs import user_data_dir
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from bot.errors import SettingsError

PREFIX = "ASSAY_"
CONFIG_VARIABLE = "ASSAY_CONFIG"
DEFAULT_FILE = Path("assay.toml")

_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/[A-Za-z0-9._-]{1,100}")

_WORKFLOW = re.compile(_TARGET.pattern + r"/[A-Za-z0-9._-]+\.ya?ml@[A-Za-z0-9._/-]+")

_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,100}[A-Za-z0-9])?")

_OBJECT_STORE = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#]*/?[^?#]*")

#: GitHub never sends a larger payload (its documentation, "Webhook events and payloads").
MAX_BODY_BYTES = 25 * 1024 * 1024


def _absolute(path: Path) -> Path:
    return Path.cwd() / path.expanduser()  # links stay as the operator wrote them


def _check_folder(path: Path) -> Path:
    if "?" in str(path):
        raise ValueError("the folder's name must not contain '?'")  # it would end the database's URL
    return _absolute(path)


def _check_database_url(url: str) -> str:
    if not url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        raise ValueError("no such kind of database")
    if url in ("sqlite:///", "sqlite:///:memory:"):
        raise ValueError("a database in memory is lost with the process")
    return url


def _check_artifacts_url(url: str) -> str:
    if url and not _OBJECT_STORE.match(url):
        raise ValueError("not the URL of a folder in an object store")
    return url.rstrip("/")


def _check_http_url(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise ValueError("not an http(s) address")
    return url.rstrip("/")


def _check_git_url(url: str) -> str:
    if not url.startswith(("https://", "http://", "file://")):
        raise ValueError("not an address that git can clone from here")
    return url.rstrip("/")


def _check_workflow(place: str) -> str:
    if not _WORKFLOW.fullmatch(place):
        raise ValueError("not the place of a workflow")
    return place


def _split_list(value: object) -> object:
    """A comma-separated list, or a TOML list."""
    return (
        tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
    )


def _check_repositories(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _TARGET.fullmatch(name):
            raise ValueError(f"{name!r} is no repository")
    return names


def _check_forks(pairs: tuple[str, ...]) -> tuple[str, ...]:
    for pair in pairs:
        target, separator, fork = pair.partition("=")
        if not separator or not _TARGET.fullmatch(target) or not _TARGET.fullmatch(fork):
            raise ValueError(f"{pair!r} is no repository and its fork")
        if target.lower() == fork.lower():
            raise ValueError(f"{target} is no fork of itself")
    return pairs


def _check_packages(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _PACKAGE.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a package")
    return names


def _check_http_urls(urls: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_check_http_url, urls))


def web_url(api_url: str) -> str:
    """The web address of the GitHub whose API is at `api_url`; git clones from there.

    An Enterprise Server's API is below /api/v3 of the same host; a data-residency host's is at api.HOST.
    """
    parts = urlsplit(api_url)
    host = parts.netloc.removeprefix("api.")
    return f"{parts.scheme}://{host}{parts.path.rstrip('/').removesuffix('/api/v3')}"


def report_url(settings: Settings, campaign: int) -> str:
    """The address of a campaign's report; "" without a public address."""
    return f"{settings.public_url}/campaigns/{campaign}" if settings.public_url else ""


class Settings(BaseSettings):
    """All settings. Descriptions give the allowed values."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        validate_default=True,
    )

    data_dir: Annotated[Path, AfterValidator(_check_folder)] = Field(
        default_factory=lambda: Path(user_data_dir("assay")),
        description="the folder for everything kept, made if missing",
    )
    database_url: Annotated[str, AfterValidator(_check_database_url)] = Field(
        default_factory=lambda known: f"sqlite:///{known['data_dir']}/assay.db",
        description="sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME",
    )
    artifacts_url: Annotated[str, AfterValidator(_check_artifacts_url)] = Field(
        default="",
        description="s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or a URL of fsspec: reports and toolchains",
    )
    webhook_secret: SecretStr | None = Field(
        default=None, min_length=1, description="the secret typed into the GitHub App's webhook settings"
    )
    webhook_secret_previous: SecretStr | None = Field(
        default=None, min_length=1, description="the secret before, accepted while the new one spreads"
    )
    github_mode: Literal["dry-run", "live"] = Field(
        default="dry-run", description="dry-run (effects become files) or live (they go to GitHub)"
    )
    github_api_url: Annotated[str, AfterValidator(_check_http_url)] = Field(
        default="https://api.github.com", description="the http(s) address of GitHub's API"
    )
    git_url: Annotated[str, AfterValidator(_check_git_url)] = Field(
        default_factory=lambda known: web_url(known["github_api_url"]),
        description="an https, http or file address; {git_url}/{owner}/{name} is cloned",
    )
    github_app_id: str | None = Field(default=None, description="the GitHub App's id or client id")
    github_private_key_file: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        default=None, description="the path of the GitHub App's private key, a PEM file"
    )
    github_token: SecretStr | None = Field(
        default=None, min_length=1, description="a token, where no GitHub App is used"
    )
    watch: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_split_list), AfterValidator(_check_repositories)
    ] = Field(default=(), description="owner/name,owner/name: repositories that are polled, webhooks or not")
    delete_after_days: int = Field(
        default=30, ge=0, le=3650, description="0 to 3650 days a repository's data outlive its installation"
    )
    keep_deliveries_days: int = Field(
        default=14, ge=8, le=365, description="8 to 365 days; GitHub may deliver again what is a week old"
    )
    keep_reports_days: int = Field(
        default=0, ge=0, le=3650, description="days a report is kept after its campaign ended; 0 for ever"
    )
    public_url: Annotated[str, AfterValidator(_check_http_url)] | None = Field(
        default=None, description="the http(s) address people reach this service at; reports are linked there"
    )
    isolation: Literal["namespaces", "landlock", "none"] = Field(
        default="landlock",
        description="namespaces, landlock or none: the lowest isolation for code that is no public "
        "release of a known compiler; below it such code is not run",
    )
    toolchain_packages: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_split_list), AfterValidator(_check_packages)
    ] = Field(
        default=(),
        description="name,name: packages a repository may name in toolchain.package beside its backend's own",
    )
    toolchain_urls: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_split_list), AfterValidator(_check_http_urls)
    ] = Field(
        default=(),
        description="address,address: beginnings of the addresses that a repository may name in "
        "toolchain.index and toolchain.artifact.url",
    )
    toolchain_cache_gib: int = Field(
        default=200, ge=1, le=100_000, description="1 to 100000 GiB of toolchains; the least used go first"
    )
    toolchain_cache_days: int = Field(
        default=30, ge=1, le=3650, description="1 to 3650 days that a toolchain outlives its last use"
    )
    proposal_forks: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_split_list), AfterValidator(_check_forks)
    ] = Field(
        default=(),
        description="owner/name=owner/fork,owner/name=owner/fork: repositories whose tests are proposed "
        "through a fork that the App may write to",
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="an address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="0 to 65535; 0 is any free port")
    workers: int = Field(
        default_factory=lambda: len(os.sched_getaffinity(0)), ge=1, description="1 or more cases at a time"
    )
    runner: str = Field(default="local", description="local, ray or github-actions: where shards run")
    runner_slots: int = Field(
        default=1, ge=1, le=1000, description="1 or more shards, and campaigns, at a time"
    )
    runner_labels: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        default=(), description="label,label: what a machine must have; of Ray, NAME=VALUE"
    )
    ray_address: str = Field(default="auto", min_length=1, description="the address of a Ray cluster")
    runner_workflow: Annotated[str, AfterValidator(_check_workflow)] | None = Field(
        default=None, description="owner/name/file.yml@branch: the workflow that runs shards"
    )
    runner_key: SecretStr | None = Field(
        default=None, min_length=32, description="32 or more characters: what runners sign with"
    )
    max_body_bytes: int = Field(
        default=MAX_BODY_BYTES,
        ge=1024,
        le=MAX_BODY_BYTES,
        description=f"1024 to {MAX_BODY_BYTES} bytes; GitHub sends no more",
    )
    log_format: Literal["auto", "json", "console"] = Field(
        default="auto", description="auto (console on a terminal, else json), json or console"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error"
    )

    @property
    def webhook_secrets(self) -> tuple[bytes, ...]:
        """The secrets a delivery may be signed with, the current one first; empty if none is set."""
        known = (self.webhook_secret, self.webhook_secret_previous)
        return tuple(secret.get_secret_value().encode() for secret in known if secret is not None)

    def proposal_fork(self, target: str) -> str:
        """The fork through which tests are proposed to a repository; "" for none."""
        pairs = (one.partition("=") for one in self.proposal_forks)
        return next((fork for name, _, fork in pairs if name.lower() == target.lower()), "")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments over variables over the file; no .env, no secrets folder."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=settings_file())


def settings_file() -> Path | None:
    """The settings file, if any. Raises SettingsError if the one in ASSAY_CONFIG is missing."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise SettingsError(
                f"{CONFIG_VARIABLE} is {named!r}, and no such file exists; name a TOML file or unset it"
            )
        return Path(named)
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def load_settings(**overrides: Any) -> Settings:
    """The settings in force; an override of None counts as not given.

    Raises SettingsError.
    """
    _check_spelling()
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"{settings_file()} is not TOML: {error}; write lines such as port = 8000"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{settings_file()} cannot be read: {error}") from None


def dump_settings(settings: Settings) -> bytes:
    """One line of JSON with all settings, secrets included, for a pipe to a process of ours."""
    values = {name: getattr(settings, name) for name in Settings.model_fields}
    plain = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in values.items()
    }
    return json.dumps(plain, default=str).encode() + b"\n"


def check_service_settings(settings: Settings) -> None:
    """Raises SettingsError if a service with these settings could not work."""
    if not settings.webhook_secrets and not settings.watch:
        raise SettingsError(
            "ASSAY_WEBHOOK_SECRET is not set, so forged deliveries could not be detected; "
            "set it to the secret in the GitHub App's webhook settings, or name in ASSAY_WATCH what is polled"
        )
    has_app = settings.github_app_id and settings.github_private_key_file
    if settings.watch and not (has_app or settings.github_token):
        raise SettingsError(
            "ASSAY_WATCH names repositories to poll, but there are no credentials for GitHub; "
            "set ASSAY_GITHUB_TOKEN, or ASSAY_GITHUB_APP_ID and ASSAY_GITHUB_PRIVATE_KEY_FILE"
        )
    if settings.github_mode == "live" and not (has_app or settings.github_token):
        raise SettingsError(
            "ASSAY_GITHUB_MODE is 'live' but there are no credentials for GitHub; set "
            "ASSAY_GITHUB_APP_ID and ASSAY_GITHUB_PRIVATE_KEY_FILE (or ASSAY_GITHUB_TOKEN), or use dry-run"
        )


def _check_spelling() -> None:
    """A misspelled variable would be ignored silently."""
    known = [PREFIX + name.upper() for name in Settings.model_fields] + [CONFIG_VARIABLE]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
            if near:
                raise SettingsError(f"{name} is no setting; did you mean {near[0]}?")


def _explain(error: ValidationError) -> str:
    problems = [
        _explain_one(str(item["loc"][0]) if item["loc"] else "", item["msg"], item["input"])
        for item in error.errors(include_url=False)
        if item["type"] != "default_factory_not_called"  # follows from another problem
    ]
    head = "a setting is wrong" if len(problems) == 1 else f"{len(problems)} settings are wrong"
    return "\n  ".join([f"{head}:", *problems])


def _explain_one(name: str, message: str, value: object) -> str:
    field = Settings.model_fields.get(name)
    if field is None:
        near = difflib.get_close_matches(name, list(Settings.model_fields), n=1)
        return f"{name!r} is no setting" + (f"; did you mean {near[0]!r}?" if near else "")
    # A database's URL may hold a password.
    secret = "SecretStr" in str(field.annotation) or name == "database_url"
    shown = "a value not shown here" if secret else repr(str(value))
    reason = message.removeprefix("Value error, ")
    return (
        f"{PREFIX}{name.upper()} is {shown}: {reason[:1].lower()}{reason[1:]}; allowed: {field.description}"
    )


#: Derived defaults, in words.
_DERIVED = {
    "data_dir": "`assay` in the user's folder for data",
    "artifacts_url": "the data folder",
    "database_url": "`assay.db` in the data folder",
    "git_url": "where people see the GitHub of `ASSAY_GITHUB_API_URL`",
    "workers": "one for each core",
}


def settings_table() -> str:
    """All settings as the Markdown table of docs/install.md."""
    rows = ["| setting | is | default |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        plain = f"`{field.default}`" if isinstance(field.default, str | int) else ""
        default = _DERIVED.get(name, plain) or "none"
        rows.append(f"| `{PREFIX}{name.upper()}` | {field.description} | {default} |")
    return "\n".join(rows)
