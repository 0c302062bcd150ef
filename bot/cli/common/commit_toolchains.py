"""How the commits of the repository that `--repo` names become toolchains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.cli.common.repositories import Repository
from bot.commit_files import CommitFiles
from bot.config import RepositoryConfig, ToolchainConfig, default_config, parse_config, read_repository_config
from bot.config.defaults import preset_toolchain
from bot.config.layouts import recognize
from bot.config.names import check_provisioner_name
from bot.errors import UsageError


def read_toolchain(
    repository: Repository, sha: str, file: Path | None, provisioners: Sequence[str]
) -> tuple[str, ToolchainConfig]:
    """The backend of a repository, and how its commits are made.

    By a configuration in `file`; else by the repository's own at `sha`, or at its newest commit, as one that
    was written later tells how earlier commits are built; else by that of a known compiler's repository, or
    of one that pins a compiler. `provisioners` go before those of the configuration.

    Raises UsageError: there is none, or a provisioner is unknown; ConfigError: it is invalid.
    """
    backend, toolchain = _read(repository, sha, file)
    for name in provisioners:
        try:
            check_provisioner_name(name)
        except ValueError as error:
            raise UsageError(f"--provisioner {name}: {error}") from None
    return backend, toolchain.model_copy(update={"provisioner": list(provisioners)} if provisioners else {})


def _read(repository: Repository, sha: str, file: Path | None) -> tuple[str, ToolchainConfig]:
    own = _own_config(repository, sha, file)
    if own is not None:
        return own.backend, own.toolchain
    read = CommitFiles(repository, repository.target, sha)
    layout = recognize(lambda path: read(path) is not None)
    if layout is not None:
        return layout.backend, preset_toolchain()
    default = default_config(read)
    if default is None:
        raise UsageError(
            f"{sha[:12]} is no commit of a known compiler's repository, and it pins none: write "
            ".github/assay.yml, or name such a file with --config"
        )
    return default.backend, default.toolchain


def _own_config(repository: Repository, sha: str, file: Path | None) -> RepositoryConfig | None:
    if file is not None:
        return parse_config(file.read_bytes(), str(file))
    for one in (sha, repository.resolve("HEAD")):
        if found := read_repository_config(CommitFiles(repository, repository.target, one)):
            return found
    return None
