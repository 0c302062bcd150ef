"""The configuration in force at a commit: the repository's own, or the default."""

from __future__ import annotations

from collections.abc import Callable

from bot.config import names
from bot.config.layouts import SourceLayout, recognize
from bot.config.model import RepositoryConfig
from bot.config.parser import CONFIG_PATH, parse_config
from bot.config.pins import find_pins
from bot.config.sections import ToolchainConfig
from bot.config.units import parse_duration
from fuzzing import backends

#: Files searched for a pin, in order.
PIN_FILES = ("requirements.txt", "pyproject.toml")

ReadFile = Callable[[str], bytes | None]


def resolve_config(read: ReadFile) -> RepositoryConfig | None:
    """The configuration at a commit whose files `read` returns: its own, else the default.

    Raises ConfigError if its own is invalid.
    """
    own = read_repository_config(read)
    return default_config(read) if own is None else own


def read_repository_config(read: ReadFile) -> RepositoryConfig | None:
    """A repository's own configuration; None if it has none. Raises ConfigError if it is invalid."""
    text = read(CONFIG_PATH)
    return None if text is None else parse_config(text, CONFIG_PATH)


def preset_toolchain() -> ToolchainConfig:
    """How a commit of a known compiler's own repository becomes a toolchain."""
    return ToolchainConfig(provisioner=["overlay"])


def preset(layout: SourceLayout) -> RepositoryConfig:
    """The configuration of a known compiler's own repository."""
    return RepositoryConfig(
        version=1,
        backend=layout.backend,
        frontend=layout.frontend or names.frontends(layout.backend)[0],
        budget=parse_duration(layout.budget),
        toolchain=preset_toolchain(),
    )


def default_config(read: ReadFile) -> RepositoryConfig | None:
    """The configuration for a repository without `.github/assay.yml`; None if it pins no known compiler.

    A known compiler's own repository is tested by its sources (`bot.config.layouts`). Else the first exact
    pin of a known backend's package, in requirements.txt and then pyproject.toml, decides the backend. A
    package that is also a reference, such as torch, does not count: most pin it for other reasons.

    read  path → content of a file, None if there is none
    """
    layout = recognize(lambda path: read(path) is not None)
    if layout is not None:
        return preset(layout)
    reference_packages = {
        backends.get(name).package for name in backends.names() if backends.get(name).reference
    }
    packages = {backends.get(name).package: name for name in names.backends()}
    packages = {package: name for package, name in packages.items() if package not in reference_packages}
    for file in PIN_FILES:
        content = read(file)
        if content is None:
            continue
        for pin in find_pins(content, file, packages):
            if pin.version is not None:
                backend = packages[pin.package]
                return RepositoryConfig(version=1, backend=backend, toolchain=ToolchainConfig(pin=file))
    return None
