"""What holds for the tests of toolchains."""

from __future__ import annotations

import pytest

from bot.toolchains import registry
from bot.toolchains.overlay import OverlayProvisioner


@pytest.fixture(autouse=True)
def nothing_known_of_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registered provisioner remembers which wheels there are, and tests before it may have asked."""
    overlay = registry.get("overlay")
    assert isinstance(overlay, OverlayProvisioner)
    monkeypatch.setattr(overlay, "_wheels", {})
