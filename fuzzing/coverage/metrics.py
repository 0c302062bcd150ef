"""The eleven metrics of Isra, as its paper defines them and as its released code counts them, and those of
graph-based fuzz testing.

Sources: Isra (ASE 2023) and its release's `criterion.py`; `operator_level`. `docs/coverage.md` has every
formula. Those of operators are means over the operators of the set, absent ones included as 0; those of
graphs are means over the models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fuzzing.coverage import operator_level
from fuzzing.coverage.operator_level import OUT_DEGREES, DegreeBounds, OperatorCounts
from fuzzing.coverage.tally import Tally

#: Shapes and attributes of an operator that count as all there are (Isra, criterion.py, where it is unused).
MAX_SPC = 1000
#: Larger out-degrees count as this one, smaller ones than the other (Isra, criterion.py: every operator's
#: out-degrees are 1 to 12).
MAX_OUT_DEGREE = 12
MIN_OUT_DEGREE = 1
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


#: The readings by the names that they have in JSON.
READINGS = ("paper", "released", "graph_fuzzing")


@dataclass(frozen=True)
class Metric:
    """A metric: its abbreviation, its full name, one line with its meaning, and its readings.

    paper, released  Isra's; None for a metric that Isra does not have
    graph_fuzzing    that of graph-based fuzz testing; None for a metric that it does not have
    """

    abbreviation: str
    name: str
    meaning: str
    paper: MetricVariant | None
    released: MetricVariant | None
    graph_fuzzing: MetricVariant | None = None

    def to_json(self, tally: Tally) -> dict[str, Any]:
        """The metric with its values for what `tally` holds."""
        variants = {reading: getattr(self, reading) for reading in READINGS}
        return {"name": self.name, "meaning": self.meaning} | {
            reading: {"value": variant.value(tally), "unit": variant.unit}
            for reading, variant in variants.items()
            if variant is not None
        }


@dataclass(frozen=True)
class OperatorObservation:
    """What was seen of one operator of the set: its row in every metric of operators.

    in_degrees            its numbers of inputs, of those it may have
    out_degrees           its numbers of consumers, from 1 to 12; `out_degrees_released` with appended nodes
                          as consumers, `out_degrees_to_five` from 0 to 5 and without those above
    successors            types that consume it; `double` pairs of such a type and one that consumes that
    attributes, shapes    distinct attributes, and distinct shapes of any of its inputs
    vectors               distinct attributes with the shapes of all inputs
    """

    nodes: int
    in_degrees: int
    out_degrees: int
    out_degrees_released: int
    out_degrees_to_five: int
    successors: int
    double: int
    attributes: int
    shapes: int
    vectors: int


def observe_operators(tally: Tally) -> dict[str, OperatorObservation]:
    """Every operator of the set → what was seen of it, zeros where it was never met."""
    observations, allowed = tally.observations, tally.operators.in_degrees
    in_degrees = Counter(name for name, degree in observations.in_degrees if degree in allowed[name])
    out_degrees, released = (
        _count_by_operator({(name, _limit(degree)) for name, degree in found})
        for found in (observations.out_degrees, observations.out_degrees_released)
    )
    to_five = Counter(name for name, degree in observations.out_degrees if degree in OUT_DEGREES)
    vectors = _count_by_operator(observations.vectors)
    successors, double = _count_by_operator(observations.edges), _count_by_operator(observations.triples)
    attributes, shapes = _count_by_operator(observations.attributes), _count_by_operator(observations.inputs)
    return {
        name: OperatorObservation(
            observations.operators[name],
            in_degrees[name],
            out_degrees[name],
            released[name],
            to_five[name],
            successors[name],
            double[name],
            attributes[name],
            shapes[name],
            vectors[name],
        )
        for name in allowed
    }


def _limit(degree: int) -> int:
    return max(MIN_OUT_DEGREE, min(MAX_OUT_DEGREE, degree))


def operator_levels(tally: Tally) -> dict[str, dict[str, float]]:
    """Every operator of the set → its shares in graph-based fuzz testing, and OLC."""
    allowed = tally.operators.in_degrees
    return {
        name: operator_level.add_olc(
            OperatorCounts(seen.in_degrees, seen.out_degrees_to_five, seen.successors, seen.vectors).shares(
                DegreeBounds(allowed[name], OUT_DEGREES), len(allowed)
            )
        )
        for name, seen in observe_operators(tally).items()
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
    """Isra's readings agree."""
    return {"paper": MetricVariant(unit, value), "released": MetricVariant(unit, value)}


def _of_graph_fuzzing(name: str) -> MetricVariant:
    def value(tally: Tally) -> float:
        return operator_level.mean_shares(list(operator_levels(tally).values()))[name]

    return MetricVariant(SHARE, value)


METRICS = (
    Metric(
        "OTC",
        "operator type coverage",
        "operators that occur",
        **_same_variants(SHARE, _mean_over_operators(lambda one: float(one.nodes > 0))),
        graph_fuzzing=_of_graph_fuzzing("OTC"),
    ),
    Metric(
        "IDC",
        "input degree coverage",
        "numbers of inputs that occur, of those that are allowed",
        **_same_variants(SHARE, _idc),
        graph_fuzzing=_of_graph_fuzzing("IDC"),
    ),
    Metric(
        "ODC",
        "output degree coverage",
        f"numbers of consumers that occur; paper: of 1 to {MAX_OUT_DEGREE}, graph fuzzing: of 0 to 5",
        MetricVariant(SHARE, _mean_over_operators(lambda one: one.out_degrees / MAX_OUT_DEGREE)),
        MetricVariant(COUNT, _mean_over_operators(lambda one: float(one.out_degrees_released))),
        _of_graph_fuzzing("ODC"),
    ),
    Metric(
        "SEC",
        "single edge coverage",
        "operators that follow an operator",
        **_same_variants(SHARE, _sec),
        graph_fuzzing=_of_graph_fuzzing("SEC"),
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
        f"input shapes and attributes of an operator; paper: of {MAX_SPC}, graph fuzzing: together, of "
        f"{operator_level.MAX_SPC}",
        MetricVariant(
            SHARE, _mean_over_operators(lambda one: min(1.0, (one.attributes + one.shapes) / MAX_SPC))
        ),
        MetricVariant(COUNT, _mean_over_operators(lambda one: float(one.attributes + one.shapes))),
        _of_graph_fuzzing("SPC"),
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
    Metric(
        "OLC",
        "operator-level coverage",
        "mean of the others of graph fuzzing",
        None,
        None,
        _of_graph_fuzzing("OLC"),
    ),
)
