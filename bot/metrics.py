"""/metrics: counters in memory, and gauges read from the database at each scrape."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bot.errors import InfrastructureError
from bot.loop import FAULTS
from bot.store import Database, counts, inbox, now
from bot.store.models import CampaignState, DeliveryState, EffectState
from fuzzing.outcomes import Verdict

#: Seconds. The goal is 20 ms at the 99th percentile; GitHub gives up at 10 s.
ACKNOWLEDGEMENT_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)

log = structlog.get_logger(__name__)


class Metrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.deliveries = Counter(
            "assay_deliveries",
            "Deliveries received, by event and by what became of the request",
            ["event", "result"],
            registry=self.registry,
        )
        self.acknowledgement = Histogram(
            "assay_acknowledgement_seconds",
            "From the first byte of a delivery's headers to our answer",
            buckets=ACKNOWLEDGEMENT_BUCKETS,
            registry=self.registry,
        )
        self.background_failures = Counter(
            "assay_background_failures",
            "Background threads and periodic jobs that ended with an error",
            ["name"],
            registry=self.registry,
        )

        self.registry.register(FAULTS)

    def watch(self, database: Database) -> None:
        """Adds the gauges that are computed from the database."""
        self.registry.register(DatabaseCollector(database))


class DatabaseCollector(Collector):
    """Counts rows at each scrape; exports no gauges if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> list[Metric]:
        """Empty, so that registering does not query the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The gauges, all from one snapshot."""
        up = GaugeMetricFamily("assay_database_up", "Whether the database answered this scrape")
        try:
            gauges = self._count()
        except InfrastructureError as error:
            log.warning("metrics.unavailable", reason=str(error))
            gauges = []
        up.add_metric([], 1.0 if gauges else 0.0)
        yield up
        yield from gauges

    def _count(self) -> list[Metric]:
        with self._database.reading() as session:
            count, oldest = inbox.backlog(session)
            age = max(0.0, (now() - oldest).total_seconds()) if oldest else 0.0
            return [
                GaugeMetricFamily("assay_inbox_backlog", "Deliveries still to be read", value=count),
                GaugeMetricFamily("assay_inbox_oldest_seconds", "How long the oldest has waited", value=age),
                _gauge_family(
                    "assay_inbox", "Deliveries kept", "state", inbox.counts(session), DeliveryState
                ),
                _gauge_family(
                    "assay_campaigns", "Campaigns", "state", counts.campaigns_by_state(session), CampaignState
                ),
                _gauge_family(
                    "assay_outcomes", "Outcomes", "verdict", counts.outcomes_by_verdict(session), Verdict
                ),
                _gauge_family(
                    "assay_effects", "Effects", "state", counts.effects_by_state(session), EffectState
                ),
            ]


def _gauge_family(name: str, what: str, label: str, counted: dict[str, int], values: type[Enum]) -> Metric:
    """One gauge for each possible value, zeros included, so that graphs have no gaps."""
    family = GaugeMetricFamily(name, f"{what}, by {label}", labels=[label])
    for value in sorted({*counted, *(str(member.value) for member in values)}):
        family.add_metric([value], counted.get(value, 0))
    return family
