"""How much of a set of operators a set of ONNX models covers: Isra's metrics and those of graph fuzzing.

`docs/coverage.md` defines them. Models are read one at a time (`models`), each becomes what it shows
(`observations`), and a `Tally` keeps no more of it than the metrics need; tallies of several processes merge.
"""

from fuzzing.coverage.metrics import METRICS, Metric, metrics_of
from fuzzing.coverage.models import InvalidModelError, extract_scopes, read
from fuzzing.coverage.observations import Observations, observe_scopes
from fuzzing.coverage.operators import OperatorSet
from fuzzing.coverage.tally import GraphCounts, Tally

__all__ = [
    "METRICS",
    "GraphCounts",
    "InvalidModelError",
    "Metric",
    "Observations",
    "OperatorSet",
    "Tally",
    "extract_scopes",
    "metrics_of",
    "observe_scopes",
    "read",
]
