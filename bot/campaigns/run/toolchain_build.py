"""Builds for campaigns and jobs: what a configuration asks for, made while a lease is minded, recorded."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from bot.campaigns.run_with_lease import LeaseHolder, run_with_lease
from bot.campaigns.services import Config, ReadFile, ReadyToolchain, Services
from bot.store.models import Toolchain


def build_toolchain(
    lease_holder: LeaseHolder, services: Services, data_dir: Path, config: Config, read: ReadFile
) -> ReadyToolchain:
    """The toolchain that a configuration asks for at a commit, whose files `read` gives; made, or found made.

    Raises ConfigError: nothing there says which; ProvisionError: it cannot be made.
    """
    spec = run_with_lease(lease_holder, lambda *_: services.resolve(config, read))
    lease_holder.progress(0, 0, f"making the toolchain {spec.label}")
    return run_with_lease(
        lease_holder,
        lambda on_event, _: services.provision(spec, data_dir, lambda note: on_event({"note": note})),
    )


def toolchain_row(ready: ReadyToolchain, at: datetime) -> Toolchain:
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
