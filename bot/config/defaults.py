"""The configuration of a repository that has none."""

from __future__ import annotations

from collections.abc import Callable

from bot.config import names
from bot.config.model import RepositoryConfig, ToolchainConfig
from bot.config.pins import find_pins
from fuzzing import backends

#: Where a pin is looked for, in this order.
PIN_FILES = ("requirements.txt", "pyproject.toml")

Read = Callable[[str], bytes | None]


def default_config(read: Read) -> RepositoryConfig | None:
    """The configuration for a repository without `.github/assay.yml`.

    The first exact pin of a known backend's package, in requirements.txt and then pyproject.toml, decides
    the backend; everything else is the documented default. None if nothing is pinned: such a repository
    is left alone. `read` gives the content of a file of the repository, None if it is not there.
    """
    packages = {backends.get(name).package: name for name in names.backends()}
    for file in PIN_FILES:
        content = read(file)
        if content is None:
            continue
        for pin in find_pins(content, file, packages):
            if pin.version is not None:
                backend = packages[pin.package]
                return RepositoryConfig(version=1, backend=backend, toolchain=ToolchainConfig(pin=file))
    return None
