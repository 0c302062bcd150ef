"""Installs releases with uv, under the operator's index settings.

Only wheels are installed, so installing runs no code of packages. Errors of uv are cut to two lines.
"""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

import uv
from packaging.requirements import Requirement
from packaging.version import Version

from bot import processes
from bot.errors import ProvisionError

INSTALL_TIMEOUT_S = 1800.0  # gigabytes of GPU libraries over a slow line
_QUERY_TIMEOUT_S = 60.0

#: uv settings that would install elsewhere, with another Python, or from source.
_REMOVED_UV_SETTINGS = (
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_WORKING_DIR",
    "UV_WORKING_DIRECTORY",
    "UV_ENV_FILE",
    "UV_NO_BINARY",
    "UV_NO_BINARY_PACKAGE",
    "UV_REQUIRE_HASHES",
    "UV_VENV_SEED",
    "UV_DRY_RUN",
    "UV_COMPILE_BYTECODE",
)
_PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
}
_OFFLINE_MESSAGES = (
    "Request failed",
    "Failed to fetch",
    "network was disabled",
    "Could not connect",
    "dns error",
)
_IGNORED_LINES = re.compile(r"^(Using Python|Resolved|Prepared|Downloading|Downloaded|warning:|\s*$)")


class IndexUnreachableError(ProvisionError):
    """The package index does not answer."""

    transient: ClassVar[bool] = True


class UnknownReleaseError(ProvisionError):
    """The index has no such release, or none with a wheel for this interpreter."""


class Installer:
    """uv with the operator's settings; `index` is the address of an index that is asked first."""

    def __init__(self, cwd: Path, index: str = "") -> None:
        self._cwd = cwd
        self._env = uv_environment()
        if index:
            self._env["UV_INDEX"] = " ".join(filter(None, (index, self._env.get("UV_INDEX", ""))))

    def make_venv(self, folder: Path) -> Path:
        """Makes a relocatable venv for our own interpreter version; returns its interpreter."""
        self._uv("venv", "--no-project", "--relocatable", "--python", sys.executable, str(folder))
        return folder / "bin" / "python"

    def install(self, python: Path, requirements: tuple[str, ...]) -> dict[str, list[str]]:
        """Installs wheels of `requirements` into an empty venv; returns what was locked: "name==version" →
        hashes.

        The hashes are those that the index gives for the wheels of the release, such as "sha256:…"; uv
        installs no other wheel. A package that the index gives no hash for has none. Nothing of what is
        installed runs: no source is built, no bytecode compiled by the venv's interpreter, and uv does not
        start it afterwards. Raises ProvisionError with the first two lines of uv's reason.
        """
        options = ("--python", str(python), "--only-binary", ":all:")
        lock = ("--generate-hashes", "--no-header", "--no-annotate", "--quiet")
        compiled = self._uv("pip", "compile", "-", *options, *lock, stdin="\n".join(requirements).encode())
        text = compiled.stdout.decode(errors="replace")
        hashes = _read_hashes(text)
        with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="assay-lock-") as file:
            file.write(text)
            file.flush()
            checked = ("--require-hashes",) if all(hashes.values()) else ()
            install = ("--strict", "--no-deps", "--no-compile-bytecode", *checked, "-r", file.name)
            self._uv("pip", "install", *options, *install)
        return hashes

    def nearest_releases(self, package: str, version: str) -> tuple[str, ...]:
        """The releases of a package nearest to `version` that can be installed: one older, one newer."""
        older = self._best(f"{package}<{version}", "highest")
        newer = self._best(f"{package}>{version}", "lowest-direct")
        return tuple(found for found in (older, newer) if found)

    def lowest_release(self, python: Path, requirement: str) -> str | None:
        """The lowest release that satisfies `requirement`, such as "openvino>2023.0"; None if none does.

        Releases without a wheel for this interpreter do not count, nor do pre-releases unless the requirement
        names one. Raises IndexUnreachableError: nothing is known.
        """
        bounds = (Version(one.version) for one in Requirement(requirement).specifier)
        allowed = "allow" if any(bound.is_prerelease for bound in bounds) else "disallow"
        done = self._query(python, requirement, "lowest-direct", "--prerelease", allowed)
        stderr = "" if done is None else done.stderr.decode(errors="replace")
        if done is None or any(mark in stderr for mark in _OFFLINE_MESSAGES):
            why = reason(stderr) if stderr else f"uv did not answer within {_QUERY_TIMEOUT_S:g} s"
            raise IndexUnreachableError(f"cannot determine which releases satisfy {requirement}: {why}")
        return _resolved(done)

    def highest_release(self, requirement: str) -> str | None:
        """The highest release that satisfies `requirement`, such as "apache-tvm<0.27"; None if none does."""
        return self._best(requirement, "highest")

    def _best(self, requirement: str, resolution: str) -> str | None:
        done = self._query(Path(sys.executable), requirement, resolution)
        return None if done is None else _resolved(done)

    def _query(
        self, python: Path, requirement: str, resolution: str, *further: str
    ) -> subprocess.CompletedProcess[bytes] | None:
        """What uv makes of a requirement alone; None if it took too long."""
        command = ("pip", "compile", "-", "--python", str(python), "--only-binary", ":all:", "--no-deps")
        options = ("--no-header", "--no-annotate", "--quiet", "--resolution", resolution, *further)
        try:
            return self._run((*command, *options), _QUERY_TIMEOUT_S, requirement.encode())
        except subprocess.TimeoutExpired:
            return None

    def _uv(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        try:
            done = self._run(arguments, INSTALL_TIMEOUT_S, stdin)
        except subprocess.TimeoutExpired:
            raise IndexUnreachableError(
                f"uv {arguments[0]} did not end within {INSTALL_TIMEOUT_S:g} s; is the package index slow?"
            ) from None
        if done.returncode:
            stderr = done.stderr.decode(errors="replace")
            unreachable = any(mark in stderr for mark in _OFFLINE_MESSAGES)
            raise (IndexUnreachableError if unreachable else ProvisionError)(reason(stderr))
        return done

    def _run(
        self, arguments: tuple[str, ...], timeout: float, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        command = [uv.find_uv_bin(), *arguments]
        try:
            return processes.run(
                command, env=self._env, cwd=self._cwd, timeout=timeout, stdin=stdin, kill_with_parent=True
            )
        except OSError as error:
            raise ProvisionError(f"cannot start uv: {error}; reinstall Assay") from error


def uv_environment() -> dict[str, str]:
    """The environment of uv: its own settings, or else pip's, proxies and certificates.

    uv ignores pip's settings. If only pip is set up (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS or
    pip.conf), they are used, with pip's choice of the best version of all indexes.
    """
    names = (*processes.SAFE_VARIABLES, *processes.NETWORK_VARIABLES, "UV_*", "XDG_*", "NETRC")
    env = {
        key: value
        for key, value in processes.filtered_environment(*names).items()
        if key not in _REMOVED_UV_SETTINGS
    }
    if not _uv_has_index(env):
        env |= _from_pip()
    return env | {"UV_NO_PROGRESS": "1", "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"}


def reason(stderr: str) -> str:
    """Uv's error and its cause or hint; two lines at most."""
    lines = [line.strip() for line in stderr.splitlines() if not _IGNORED_LINES.match(line)]
    if any(mark in stderr for mark in _OFFLINE_MESSAGES):
        last = lines[-1] if lines else "no answer"
        return f"the package index cannot be reached: {_plain(last)}\ncheck the network and UV_DEFAULT_INDEX"
    causes = [_plain(line) for line in lines if re.match(r"(cause|hint|error):", line)]
    causes = [line for line in causes if not line.startswith("No solution found")] or [
        _plain(x) for x in lines
    ]
    return processes.first_lines(causes, 2) or "uv failed without a message"


def _read_hashes(lock: str) -> dict[str, list[str]]:
    """What a requirements file with hashes pins: "name==version" → its hashes, in the file's order."""
    lines = lock.replace("\\\n", " ").splitlines()
    pins = (line.split() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return {
        words[0]: [word.removeprefix("--hash=") for word in words if word.startswith("--hash=")]
        for words in pins
    }


def _resolved(done: subprocess.CompletedProcess[bytes]) -> str | None:
    match = re.search(r"^[\w.-]+==(\S+)$", done.stdout.decode(errors="replace"), re.MULTILINE)
    return match[1] if match and done.returncode == 0 else None


def _plain(line: str) -> str:
    text = re.sub(r"^(error|cause|hint):\s*", "", line)
    return re.sub(r"://[^/\s@]+@", "://", text)[:500]  # an index address may carry a password


def _uv_has_index(env: dict[str, str]) -> bool:
    if any(
        name.startswith(("UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX", "UV_FIND_LINKS")) for name in env
    ):
        return True
    home = Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = (env.get("UV_CONFIG_FILE"), home / "uv" / "uv.toml", "/etc/uv/uv.toml")
    return any(file and Path(file).is_file() for file in files)


def _from_pip() -> dict[str, str]:
    settings = _pip_files()
    for option in _PIP_TO_UV:
        value = os.environ.get("PIP_" + option.replace("-", "_").upper())
        if value:
            settings[option] = value
    env = {_PIP_TO_UV[option]: " ".join(value.split()) for option, value in settings.items() if value.strip()}
    if "UV_FIND_LINKS" in env:
        env["UV_FIND_LINKS"] = env["UV_FIND_LINKS"].replace(" ", ",")
    if "UV_INDEX" in env:
        env["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # what pip does with several indexes
    return env


def _pip_files() -> dict[str, str]:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = [Path("/etc/pip.conf"), Path.home() / ".pip" / "pip.conf", home / "pip" / "pip.conf"]
    files += [Path(os.environ["PIP_CONFIG_FILE"])] if os.environ.get("PIP_CONFIG_FILE") else []
    settings: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (OSError, UnicodeDecodeError, configparser.Error):
            continue  # pip would refuse its own file; that is between the operator and pip
        for option in _PIP_TO_UV:
            if parser.has_option("global", option):
                settings[option] = parser.get("global", option)
    return settings
