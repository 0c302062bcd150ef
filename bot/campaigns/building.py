"""Builds for campaigns and jobs: what a configuration asks for, made while a lease is minded, recorded."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from bot.campaigns.attend import Attended, attend
from bot.campaigns.services import Config, Read, Ready, Services
from bot.store.models import Toolchain


def build(attended: Attended, services: Services, data_dir: Path, config: Config, read: Read) -> Ready:
    """The toolchain that a configuration asks for at a commit, whose files `read` gives; made, or found made.

    Raises ConfigError: nothing there says which; ProvisionError: it cannot be made.
    """
    spec = attend(attended, lambda *_: services.resolve(config, read))
    attended.progress(0, 0, f"making the toolchain {spec.label}")
    return attend(
        attended,
        lambda on_event, _: services.provision(spec, data_dir, lambda note: on_event({"note": note})),
    )


def row(ready: Ready, at: datetime) -> Toolchain:
    """What is recorded of it."""
    return Toolchain(
        digest=ready.digest,
        backend=ready.spec.backend,
        provisioner=ready.spec.provisioner,
        label=ready.spec.label,
        python=str(ready.python),
        versions=dict(ready.versions),
        requirements=list(ready.requirements),
        created_at=at,
    )
