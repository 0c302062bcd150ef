"""The configuration that holds at a commit: a repository's own words, or the default of one that has none."""

from __future__ import annotations

from collections.abc import Callable

from bot.config import names
from bot.config.model import RepositoryConfig
from bot.config.parser import CONFIG_PATH, parse_config
from bot.config.pins import find_pins
from bot.config.sections import ToolchainConfig
from fuzzing import backends

#: Where a pin is looked for, in this order.
PIN_FILES = ("requirements.txt", "pyproject.toml")

ReadFile = Callable[[str], bytes | None]


def resolve_config(read: ReadFile) -> RepositoryConfig | None:
    """What a repository wants at a commit whose files `read` gives: its own words, else the default.

    Raises ConfigError: its words cannot be read.
    """
    own = read_repository_config(read)
    return default_config(read) if own is None else own


def read_repository_config(read: ReadFile) -> RepositoryConfig | None:
    """A repository's own words; None where it says nothing. Raises ConfigError: they cannot be read."""
    text = read(CONFIG_PATH)
    return None if text is None else parse_config(text, CONFIG_PATH)


def default_config(read: ReadFile) -> RepositoryConfig | None:
    """The configuration for a repository without `.github/assay.yml`.

    A package that is also the judge's, such as torch, decides nothing: most repositories pin it for other
    reasons than to test its compiler.

    The first exact pin of a known backend's package, in requirements.txt and then pyproject.toml, decides
    the backend; everything else is the documented default. None if nothing is pinned: such a repository
    is left alone. `read` gives the content of a file of the repository, None if it is not there.
    """
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
