"""`assay serve` with the compiler of `tests.scenarios.toolchain`, and in a hurry.

    python -m tests.scenarios.service

Settings come from ASSAY_* variables as always.
"""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any

from bot.cli import serve
from bot.github import governor, publisher
from bot.settings import Settings
from bot.webhooks import reader
from tests.scenarios import toolchain

#: How long things that only wait may take here, in seconds; in production they are whole seconds and minutes.
SOON = 0.05


def main() -> None:
    """Serves until it is stopped."""
    hurry()
    composed = importlib.import_module("bot.compose.service")
    original = composed.campaign_services

    def campaign_services(settings: Settings, **fields: Any) -> Any:
        return original(settings, **(fields | toolchain.replaced(settings.data_dir)))

    composed.campaign_services = campaign_services
    serve.command.main(["--host", "127.0.0.1", "--port", "0"], standalone_mode=False)


def hurry() -> None:
    """Shortens waits that only keep GitHub and the machine at ease; nothing is decided by them."""
    publisher.POLL_S = SOON
    publisher.LEASE = timedelta(seconds=1)  # a row left `sending` by a kill is taken up after this
    publisher.FIRST_WAIT = timedelta(seconds=SOON)
    publisher.Publisher.run_forever.__defaults__ = (SOON,)
    governor.Governor.__init__.__kwdefaults__["gap_s"] = 0.0  # type: ignore[index]
    reader.GATHER_S = 0.01
    for module, names in _WAITS.items():
        for name in names:
            there = importlib.import_module(module)
            assert hasattr(there, name), f"{module} has no {name}"
            setattr(there, name, SOON)
    for module, name in (("bot.pulls.checking", "EVERY"), ("bot.pulls.watch", "LEASE")):
        setattr(importlib.import_module(module), name, timedelta(seconds=1))
    settle = importlib.import_module("bot.pulls.intake")
    for function in (settle.handle, settle.follow):
        function.__kwdefaults__["settle"] = timedelta(seconds=4 * SOON)


_WAITS = {
    "bot.pulls.watch": ("POLL_S", "CHECKS_S"),
    "bot.campaigns.engine": ("IDLE_S",),
    "bot.campaigns.context": ("LOOK_S",),
    "bot.jobs.worker": ("IDLE_S",),
    "bot.commands.worker": ("IDLE_S",),
}

if __name__ == "__main__":
    main()
