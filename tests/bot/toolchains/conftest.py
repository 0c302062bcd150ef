"""What holds for the tests of toolchains."""

from __future__ import annotations

import pytest

from bot.toolchains import index, registry
from bot.toolchains.overlay import OverlayProvisioner


@pytest.fixture(autouse=True)
def nothing_known_of_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provisioners remember which wheels there are, and tests before may have asked."""
    overlay = registry.get("overlay")
    assert isinstance(overlay, OverlayProvisioner)
    monkeypatch.setattr(overlay, "_wheels", {})
    monkeypatch.setattr(index, "_listed", {})
