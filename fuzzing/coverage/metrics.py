"""The eleven metrics of Isra, each in both readings: as the paper defines it, as the released code counts it.

Source: Isra (ASE 2023) and its release's `criterion.py`; `docs/coverage.md` has every formula. Those of
operators are means over the operators of the set, absent ones included as 0; those of graphs are means over
the models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fuzzing.coverage.observations import MAX_OUT_DEGREE
from fuzzing.coverage.tally import Tally

#: Shapes and attributes of an operator that count as all there are (Isra, criterion.py, where it is unused).
MAX_SPC = 1000
SHARE, COUNT = "share", "count"

Value = Callable[[Tally], float]


@dataclass(frozen=True)
class MetricVariant:
    """One reading of a metric.

    unit   `share`, from 0 to 1, or `count`
    value  computes it
    """

    unit: str
    value: Value


@dataclass(frozen=True)
class Metric:
    """A metric: its abbreviation, its full name, one line with its meaning, both readings."""

    abbreviation: str
    name: str
    meaning: str
    paper: MetricVariant
    released: MetricVariant

    def to_json(self, tally: Tally) -> dict[str, Any]:
        """The metric with its values for what `tally` holds."""
        return {
            "name": self.name,
            "meaning": self.meaning,
            "paper": {"value": self.paper.value(tally), "unit": self.paper.unit},
            "released": {"value": self.released.value(tally), "unit": self.released.unit},
        }


@dataclass(frozen=True)
class OperatorObservation:
    """What was seen of one operator of the set: its row in every metric of operators.

    in_degrees            its numbers of inputs, of those it may have
    out_degrees           its numbers of consumers; `out_degrees_released` with appended nodes as consumers
    successors            types that consume it; `double` pairs of such a type and one that consumes that
    attributes, shapes    distinct attributes, and distinct shapes of any of its inputs
    """

    nodes: int
    in_degrees: int
    out_degrees: int
    out_degrees_released: int
    successors: int
    double: int
    attributes: int
    shapes: int


def observe_operators(tally: Tally) -> dict[str, OperatorObservation]:
    """Every operator of the set → what was seen of it, zeros where it was never met."""
    observations, allowed = tally.observations, tally.operators.in_degrees
    in_degrees = Counter(name for name, degree in observations.in_degrees if degree in allowed[name])
    out_degrees, released = (
        _count_by_operator(observations.out_degrees),
        _count_by_operator(observations.out_degrees_released),
    )
    successors, double = _count_by_operator(observations.edges), _count_by_operator(observations.triples)
    attributes, shapes = _count_by_operator(observations.attributes), _count_by_operator(observations.inputs)
    return {
        name: OperatorObservation(
            observations.operators[name],
            in_degrees[name],
            out_degrees[name],
            released[name],
            successors[name],
            double[name],
            attributes[name],
            shapes[name],
        )
        for name in allowed
    }


def metrics_of(tally: Tally) -> dict[str, dict[str, Any]]:
    """Abbreviation → the metric as JSON, in the order of METRICS."""
    return {metric.abbreviation: metric.to_json(tally) for metric in METRICS}


def _count_by_operator(tuples: Iterable[tuple[Any, ...]]) -> Counter[str]:
    return Counter(one[0] for one in tuples)


def _mean_over_operators(of_one: Callable[[OperatorObservation], float]) -> Value:
    def value(tally: Tally) -> float:
        return sum(map(of_one, observe_operators(tally).values())) / len(tally.operators)

    return value


def _mean_over_models(*counts: str) -> Value:
    def value(tally: Tally) -> float:
        return sum(tally.sums[name] for name in counts) / tally.models if tally.models else 0.0

    return value


def _idc(tally: Tally) -> float:
    allowed = tally.operators.in_degrees
    seen = observe_operators(tally)
    return sum(one.in_degrees / len(allowed[name]) for name, one in seen.items()) / len(allowed)


def _sec(tally: Tally) -> float:
    return len(tally.observations.edges) / len(tally.operators) ** 2


def _dec(tally: Tally) -> float:
    return len(tally.observations.triples) / len(tally.operators) ** 3


def _nsa_released(tally: Tally) -> float:
    """Attributes count for the first model that shows them: all models together count each once."""
    if not tally.models:
        return 0.0
    return (tally.sums["shapes"] + len(tally.observations.attributes)) / tally.models


def _same_variants(unit: str, value: Value) -> dict[str, MetricVariant]:
    """Both readings agree."""
    return {"paper": MetricVariant(unit, value), "released": MetricVariant(unit, value)}


METRICS = (
    Metric(
        "OTC",
        "operator type coverage",
        "operators that occur",
        **_same_variants(SHARE, _mean_over_operators(lambda one: float(one.nodes > 0))),
    ),
    Metric(
        "IDC",
        "input degree coverage",
        "numbers of inputs that occur, of those that are allowed",
        **_same_variants(SHARE, _idc),
    ),
    Metric(
        "ODC",
        "output degree coverage",
        f"numbers of consumers that occur; paper: of 1 to {MAX_OUT_DEGREE}",
        MetricVariant(SHARE, _mean_over_operators(lambda one: one.out_degrees / MAX_OUT_DEGREE)),
        MetricVariant(COUNT, _mean_over_operators(lambda one: float(one.out_degrees_released))),
    ),
    Metric(
        "SEC",
        "single edge coverage",
        "operators that follow an operator",
        **_same_variants(SHARE, _sec),
    ),
    Metric(
        "DEC",
        "double edge coverage",
        "pairs of operators that follow an operator",
        **_same_variants(SHARE, _dec),
    ),
    Metric(
        "SPC",
        "shape and attribute coverage, SAC",
        f"input shapes and attributes of an operator; paper: of {MAX_SPC}",
        MetricVariant(
            SHARE, _mean_over_operators(lambda one: min(1.0, (one.attributes + one.shapes) / MAX_SPC))
        ),
        MetricVariant(COUNT, _mean_over_operators(lambda one: float(one.attributes + one.shapes))),
    ),
    Metric(
        "NOO", "number of operations", "nodes in a model", **_same_variants(COUNT, _mean_over_models("nodes"))
    ),
    Metric(
        "NOT",
        "number of operation types",
        "operators in a model",
        **_same_variants(COUNT, _mean_over_models("operators")),
    ),
    Metric(
        "NOP",
        "number of operation pairs",
        "edges in a model; released: distinct by types",
        MetricVariant(COUNT, _mean_over_models("edges")),
        MetricVariant(COUNT, _mean_over_models("pairs")),
    ),
    Metric(
        "NTR",
        "number of operation triples",
        "consecutive edges in a model; released: distinct by types",
        MetricVariant(COUNT, _mean_over_models("paths")),
        MetricVariant(COUNT, _mean_over_models("triples")),
    ),
    Metric(
        "NSA",
        "number of shapes and attributes",
        "shapes and attributes in a model; released: attributes once a run",
        MetricVariant(COUNT, _mean_over_models("shapes", "attributes")),
        MetricVariant(COUNT, _nsa_released),
    ),
)
