"""Settings of a generator run."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzzing.graph.operator_spec import GraphLimits

#: The picking rate of the paper and of its released code.
PICKING_RATE = 0.97
#: What today's compilers all read; the newest that onnx knows they mostly refuse.
OPSET = 21


@dataclass(frozen=True)
class GeneratorSettings:
    """How models are generated. The defaults find bugs; the paper's coverage runs have 1 to 200 nodes.

    nodes         the least and the most nodes of a model, drawn uniformly (paper: 1-10 to find bugs)
    opset         of the models
    operators     names of those to use; none: all that are specified at the opset
    dtypes        element types of new data, and of primary inputs
    mixed         nodes may take edges of any other element type too, as Cast and comparisons give them
    picking_rate  how often an input is an existing edge, if one fits
    limits        bounds on what is created
    concatenate_outputs  as in Isra: flatten unused edges and concatenate them to one output, else every
                  unused edge is an output
    initializers  make new data initializers instead of graph inputs
    patterns      also use patterns: groups of operators that count as one
    left_out      operators with element types that their primary input must not have; pairs, by name
    """

    nodes: tuple[int, int] = (1, 10)
    opset: int = OPSET
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32",)
    mixed: bool = False
    picking_rate: float = PICKING_RATE
    limits: GraphLimits = field(default_factory=GraphLimits)
    concatenate_outputs: bool = False
    initializers: bool = False
    patterns: bool = False
    left_out: tuple[tuple[str, tuple[str, ...]], ...] = ()
