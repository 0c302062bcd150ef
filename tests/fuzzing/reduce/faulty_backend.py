"""A compiler with faults planted in its converters and passes, each of which has one cause.

The option `fault` names the cause: a pattern of operators, attributes, types or shapes in the model. Where a
node matches, a `crash` fault raises in the conversion, as a converter does; a `hang` fault does not end; a
`wrong` fault puts a Neg behind the node, so that the error runs through the rest of the graph as a real one
would.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

from fuzzing.backends.base import register

sys.path.append(str(Path(__file__).parents[3]))
from tests.support.faults import (
    Match,
    ModelContext,
    Rewriter,
    after,
    having,
    is_a,
    matching,
    negate,
    of_rank,
    twice,
    wide,
)

#: By name: the kind, and the cause.
FAULTS: dict[str, tuple[str, Match]] = {
    "crash-elu": ("crash", is_a("Elu")),
    "crash-tile": ("crash", is_a("Tile")),
    "crash-lppool": ("crash", is_a("LpPool")),
    "crash-gather-axis": ("crash", having("Gather", "axis", lambda axis: axis != 0)),
    "crash-leaky-alpha": ("crash", having("LeakyRelu", "alpha")),
    "crash-softmax-4d": ("crash", of_rank("Softmax", 4)),
    "crash-transpose-reshape": ("crash", after("Reshape", "Transpose")),
    "crash-concat-of-split": ("crash", after("Concat", "Split")),
    "crash-add-itself": ("crash", twice("Add")),
    "crash-pad-5d": ("crash", of_rank("Pad", 5)),
    "hang-elu": ("hang", is_a("Elu")),
    "wrong-sigmoid": ("wrong", is_a("Sigmoid")),
    "wrong-prelu": ("wrong", is_a("PRelu")),
    "wrong-globalmaxpool": ("wrong", is_a("GlobalMaxPool")),
    "wrong-slice": ("wrong", is_a("Slice")),
    "wrong-reducemean-3d": ("wrong", of_rank("ReduceMean", 3)),
    "wrong-relu-of-conv": ("wrong", after("Relu", "Conv")),
    "wrong-mul-of-tanh": ("wrong", after("Mul", "Tanh", "Sigmoid")),
    "wrong-matmul-of-transpose": ("wrong", after("MatMul", "Transpose")),
    "wrong-wide-sin": ("wrong", wide("Sin", 0, 3)),
    "wrong-max-itself": ("wrong", twice("Max")),
}
#: Several Elu never end, and one alone takes so many seconds.
SLOW, SLOW_S = "slow-elu", 4.0
#: An Elu alone fails in a process that has compiled before, as where a cache is spoiled.
STALE = "stale-elu"
#: A Tile fails, a Neg ends the process, and a Sin in a process that has compiled before.
SEVERAL = "several"


@register
class Faulty(Rewriter):
    """See the head of this file."""

    name: ClassVar[str] = "faulty"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"fault": (*FAULTS, STALE, SLOW, SEVERAL)}
    _compiled = 0

    def rewrite(self, fault: str, model: Any, context: ModelContext) -> None:
        self._compiled += 1
        if fault == STALE:
            if self._compiled == 1 and len(model.graph.node) == 1:
                return
            fault = "crash-elu"
        if fault == SLOW:
            if sum(node.op_type == "Elu" for node in model.graph.node) == 1:
                time.sleep(SLOW_S)
                return
            fault = "hang-elu"
        if fault == SEVERAL:
            found = {node.op_type for node in model.graph.node}
            if "Neg" in found or ("Sin" in found and self._compiled > 1):
                os.kill(os.getpid(), signal.SIGSEGV)
            fault = "crash-tile"
        kind, match = FAULTS[fault]
        for node in matching(match, model, context):
            if kind == "crash":
                _convert(node.op_type, fault)
            if kind == "hang":
                time.sleep(3600)
            negate(model.graph, node)


def _convert(op: str, fault: str) -> None:
    raise ValueError(f"converter of {op}: check failed: cannot lower this ({fault})")
