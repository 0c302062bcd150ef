"""How much of a set of operators a set of ONNX models covers: Isra's eleven metrics in both readings.

`docs/coverage.md` defines them. Models are read one at a time (`models`), each becomes what it shows
(`facts`), and a `Tally` keeps no more of it than the metrics need; tallies of several processes merge.
"""

from fuzzing.coverage.facts import Facts, facts_of
from fuzzing.coverage.metrics import METRICS, Metric, metrics_of
from fuzzing.coverage.models import BrokenModelError, read, scopes_of
from fuzzing.coverage.operators import OperatorSet
from fuzzing.coverage.tally import GraphFigures, Tally

__all__ = [
    "METRICS",
    "BrokenModelError",
    "Facts",
    "GraphFigures",
    "Metric",
    "OperatorSet",
    "Tally",
    "facts_of",
    "metrics_of",
    "read",
    "scopes_of",
]
