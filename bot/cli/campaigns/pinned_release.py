"""Releases as the commits of a repository, each of which pins itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.toolchains.wheel_pins import pin_release


@dataclass(frozen=True)
class PinnedRelease:
    """Implements `bot.campaigns.services.Repositories` for the releases of a package."""

    package: str

    def read(self, _target: str, sha: str, path: str) -> bytes | None:
        """Pins the release, and the reference libraries at the versions installed here."""
        return pin_release(self.package, sha) if path == "requirements.txt" else None

    def commits(self, _target: str, _base: str, _head: str, _paths: Sequence[str]) -> Sequence[str]:
        """Releases have no commits between them."""
        return ()

    def default_branch(self, _target: str) -> str:
        """The branch that releases are thought to be on."""
        return "main"

    def change(self, _target: str, _base: str, _head: str) -> None:
        """The difference between two releases is unknown."""
