"""The folder for a backend's reusable files, such as a precompiled header."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

from fuzzing import backends
from fuzzing.errors import ToolchainError
from fuzzing.execute.worker_command import WorkerCommand

_PLACE = "{cache}"


def resolve_cache_folder(command: WorkerCommand) -> str:
    """The folder, created if needed; "" for a backend whose environment has no "{cache}".

    Files there may carry over from one case to the next, so only backends that request it have one;
    toolchains, and releases of a compiler within one, never share theirs. Raises ToolchainError.
    """
    if not command.cache and not any(_PLACE in value for value in _environment(command).values()):
        return ""
    folder = Path(command.cache).absolute() if command.cache else _default(command)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ToolchainError(
            f"cannot make the cache folder {folder} of {command.backend}: {error.strerror}; "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    return str(folder)


def _environment(command: WorkerCommand) -> dict[str, str]:
    return backends.get(command.backend).environment


def _default(command: WorkerCommand) -> Path:
    python = Path(command.python).absolute()
    backend = backends.get(command.backend)
    sites = [str(path) for path in python.parent.parent.glob("lib/python3*/*-packages")]
    versions = [found.version for found in metadata.distributions(name=backend.package, path=sites)]
    digest = hashlib.sha256("\0".join([str(python), str(python.resolve()), *sorted(versions)]).encode())
    return user_cache_path("assay") / f"{backend.name}-{digest.hexdigest()[:16]}"
