"""Checks of options that several commands have."""

from __future__ import annotations

from bot.errors import UsageError
from fuzzing import backends


def check_device(backend: str, device: str) -> None:
    """Raises UsageError where the backend has no such device: said before any work is done."""
    devices = backends.get(backend).devices
    if device not in devices:
        raise UsageError(f"--device {device}: {backend} has no such device; it has {', '.join(devices)}")
