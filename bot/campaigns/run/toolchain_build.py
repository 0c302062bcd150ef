"""Makes and records toolchains for campaigns and jobs, under a lease."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from bot.campaigns.run_with_lease import LeaseHolder, run_with_lease
from bot.campaigns.services import Config, ReadyToolchain, Services
from bot.commit_files import ReadFile
from bot.store.models import Toolchain


def build_toolchain(
    lease_holder: LeaseHolder,
    services: Services,
    data_dir: Path,
    config: Config,
    read: ReadFile,
    like: ReadyToolchain | None = None,
) -> ReadyToolchain:
    """The toolchain of a configuration at the commit that `read` reads from; made, or found in the cache.

    like  a toolchain that it is to be compared with: made in the same way where that is possible

    Raises ConfigError: nothing is pinned; ProvisionError: it cannot be made, or may not run here.
    """
    spec = run_with_lease(lease_holder, lambda *_: services.resolve(config, read))
    if like is not None:
        spec = spec.like(like.spec)
    lease_holder.progress(0, 0, f"making the toolchain {spec.label}")
    return run_with_lease(
        lease_holder,
        lambda on_event, _: services.provision(spec, data_dir, lambda note: on_event({"note": note})),
    )


def toolchain_row(ready: ReadyToolchain, at: datetime) -> Toolchain:
    """The row of a toolchain."""
    return Toolchain(
        digest=ready.digest,
        backend=ready.spec.backend,
        provisioner=ready.spec.provisioner,
        label=ready.spec.label,
        python=str(ready.python),
        versions=dict(ready.versions),
        requirements=list(ready.requirements),
        overlay={one.path: one.place for one in ready.spec.overlay},
        created_at=at,
    )
