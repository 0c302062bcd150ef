"""The repository that `--repo` names: a folder, or the address of a server's."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from bot.errors import UsageError
from bot.github.git import is_protected
from bot.github.local_repository import LocalRepository
from bot.github.mirrored_repository import MirroredRepository
from bot.github.repositories import Repositories
from bot.settings import Settings
from bot.terminal import echo
from bot.wiring.github import repositories

Repository = LocalRepository | MirroredRepository


def open_repository(place: str, settings: Settings) -> Repository:
    """The repository in a folder or at a URL, of which only what is read is fetched, into the data folder.

    Raises UsageError if there is none, RefusalError or InfrastructureError if a server does not give it.
    """
    if "://" not in place and Path(place).exists():
        return LocalRepository(Path(place), settings.data_dir / "objects")
    parts = _split(place)
    if parts.scheme not in ("https", "http", "file"):
        raise UsageError(
            f"--repo {place}: no such folder; give the folder of a checkout or mirror, or an address such as "
            "https://github.com/apache/tvm"
        )
    path = parts.path.rstrip("/").removesuffix(".git")
    folder, _, name = path.rpartition("/")
    parent, _, owner = folder.rpartition("/")
    server = f"{parts.scheme}://{parts.netloc}{parent}"
    if parts.query or parts.fragment or not (owner and name):
        raise UsageError(f"--repo {place}: write it as https://github.com/OWNER/NAME")
    if not is_protected(parts):
        raise UsageError(
            f"--repo {place}: not read over http: anybody on the way could change the code that runs here; "
            f"write {place.replace('http', 'https', 1)}, or clone it and give the folder"
        )
    echo(f"reading {owner}/{name} from {server}", err=True)
    found = MirroredRepository(_of_server(server, settings), f"{owner}/{name}", "")
    return MirroredRepository(found.repositories, found.target, found.resolve("HEAD"))


def _split(place: str) -> SplitResult:
    """The parts of an address; a password is never repeated in a message."""
    try:
        parts = urlsplit(place)
    except ValueError as error:
        raise UsageError(f"--repo {place}: no address: {error}") from None
    if parts.scheme in ("https", "http") and "@" in parts.netloc:
        raise UsageError(
            f"--repo: the address of {parts.hostname} holds a user name or password, which would be stored; "
            "clone it with git and give the folder"
        )
    return parts


def _of_server(server: str, settings: Settings) -> Repositories:
    """The repositories of a server. The service's own one has its credentials and its mirrors."""
    if server == settings.git_url.rstrip("/"):
        return repositories(settings)
    parts = urlsplit(server)
    return Repositories(server, settings.data_dir / "git" / f"{parts.hostname or parts.scheme}{parts.path}")
