"""Hypothesis without a clock: a slow machine must not fail a law."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("assay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("assay")
