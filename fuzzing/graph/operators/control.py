"""Operators with bodies: If, Loop, Scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from fuzzing.graph.attribute_domains import Choice, Computed, planned_attribute
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import BOOLEAN, Interval, hull
from fuzzing.graph.ir import Builder, Constant, Graph, Subgraph
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    NodeContext,
    OperatorSpec,
    primary_shape,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.subgraph_bodies import Value, build_bounded_chain, build_chain
from fuzzing.graph.operators.sum_bounds import max_output_elements
from fuzzing.graph.types import FLOATS, Dim, Shape, TensorType

_UNIT = Interval(-1, 1)
_ITERATION, _CONDITION = TensorType("int64", ()), TensorType("bool", ())


def _merge_branch_types(one: TensorType, other: TensorType) -> TensorType:
    if one.shape is None or other.shape is None or one.rank != other.rank:
        return TensorType(one.dtype, None)
    pairs = zip(one.shape, other.shape, strict=True)
    return TensorType(one.dtype, tuple([a if a == b else None for a, b in pairs]))


def _results(graph: Graph) -> list[TensorType]:
    return [graph.types[edge] for edge in graph.outputs]


def _body(context: NodeContext, name: str) -> Subgraph:
    body = context.get(name)
    if not isinstance(body, Subgraph):
        raise TypeError(f"{context.operator.name}'s {name} is no graph")
    return body


# If
@dataclass
class _Ranges:
    """Bounds on each output of the bodies made so far."""

    found: list[list[Interval]] = field(default_factory=list)


def _branches(context: NodeContext) -> _Ranges:
    context.outputs = context.rng.choice((1, 1, 2))
    return _Ranges()


def _branch(context: NodeContext) -> Subgraph:
    """Each branch works on the same two edges of the enclosing graph."""
    builder = Builder(context.opset)
    values = [Value(builder.capture(context.x), context.range(position)) for position in range(2)]
    found = [
        build_chain(context.rng, builder, context.rng.choice(values), values) for _ in range(context.outputs)
    ]
    context.plan.found.append([value.range for value in found])
    captures = tuple([edge for edge in context.edges[:2] if edge is not None])
    return Subgraph(builder.finish(tuple([value.edge for value in found])), captures)


def _if(context: NodeContext) -> tuple[TensorType, ...]:
    branches = (_body(context, "then_branch"), _body(context, "else_branch"))
    pairs = zip(*[_results(branch.graph) for branch in branches], strict=True)
    return tuple([_merge_branch_types(one, other) for one, other in pairs])


def _if_values(context: NodeContext) -> tuple[Interval, ...]:
    return tuple([hull(pair) for pair in zip(*context.plan.found, strict=True)])


# Loop
@dataclass
class _LoopPlan:
    """The control of a loop.

    most   its trip count
    until  the iteration from which the body requests the end; -1: never
    scan   the bounds on scan outputs; None if there are none
    """

    most: int
    until: int = -1
    scan: Interval | None = None


def _plan_loop(context: NodeContext) -> _LoopPlan:
    rng, limits = context.rng, context.limits
    count = rng.between(0, 3)
    grown = context.rank < limits.max_rank and count * context.x.elements <= max_output_elements(context)
    if grown and (count or limits.min_dim == 0) and rng.chance(0.5):
        context.outputs = 2
        return _LoopPlan(count)
    return _LoopPlan(count, rng.below(3) if rng.chance(0.3) else -1)


def _loop_body(context: NodeContext) -> Subgraph:
    """The carried value passes through a few operators that end in a bounded one."""
    builder, plan = Builder(context.opset), context.plan
    iteration, condition = builder.placeholder(_ITERATION), builder.placeholder(_CONDITION)
    carried = Value(builder.placeholder(context.x), hull((context.range(3), _UNIT)))
    outside = Value(builder.capture(context.x), context.range(0))
    if plan.until < 0:
        (onward,) = builder.node("Identity", (condition,), (_CONDITION,))
    else:
        last = builder.constant(make_scalar("int64", plan.until))
        (onward,) = builder.node("Less", (iteration, last), (_CONDITION,))
    outputs = [onward, build_bounded_chain(context.rng, builder, carried, (carried, outside)).edge]
    if context.outputs == 2:
        collected = build_chain(context.rng, builder, carried, (carried, outside))
        plan.scan = collected.range
        outputs.append(collected.edge)
    captures = tuple([edge for edge in context.edges[:1] if edge is not None])
    return Subgraph(builder.finish(tuple(outputs)), captures)


def _loop(context: NodeContext) -> tuple[TensorType, ...]:
    body = _body(context, "body")
    first = min(context.operator.captured, len(body.captures))  # of the node's own inputs
    carried = context.types[first + 2 :]
    _, *results = _results(body.graph)
    found = []
    for before, after in zip_longest(carried, results):
        if before is not None:
            found.append(_merge_branch_types(before, after))
        else:
            length = _trip_count(context, first, body.graph)
            found.append(TensorType(after.dtype, None if after.shape is None else (length, *after.shape)))
    return tuple(found)


def _trip_count(context: NodeContext, first: int, graph: Graph) -> Dim:
    """The iteration count: known if the count is, and the condition is passed through as true."""
    most = context.constants[first] if context.given(first) else None
    if most is None:
        return None
    if context.given(first + 1):
        begins = context.constants[first + 1]
        if begins is None or not begins.array.all():
            return None
    ends = graph.outputs[0]
    given = graph.constants.get(ends)
    always = given is not None and bool(given.array.all())
    handed = any(
        node.op == "Identity" and node.outputs == (ends,) and node.inputs == (graph.inputs[1],)
        for node in graph.nodes
    )
    return max(0, int(most.array.reshape(-1)[0])) if always or handed else None


def _loop_values(context: NodeContext) -> tuple[Interval, ...]:
    final = hull((context.range(3), _UNIT))
    return (final,) if context.plan.scan is None else (final, context.plan.scan)


def _initial_states(context: NodeContext) -> Constant | None:
    return make_scalar("bool", True) if context.rng.chance(0.5) else None


# Scan
@dataclass
class _ScanPlan:
    """The inputs of a scan.

    axis   of its input
    state  the shape of a slice and of the carried state
    out    the bounds on scan outputs
    """

    axis: int
    state: tuple[int, ...]
    out: Interval = BOOLEAN


def _slices(context: NodeContext) -> _ScanPlan:
    rng, given = context.rng, context.attributes
    axis = rng.below(context.rank) if rng.chance(0.5) else 0
    if axis or rng.chance(0.2):
        given["scan_input_axes"] = (axis - context.rank if rng.chance(0.2) else axis,)
    if rng.chance(0.3):
        given["scan_output_axes"] = (rng.between(-context.rank, context.rank - 1),)
    for name in ("scan_input_directions", "scan_output_directions"):
        if rng.chance(0.3):
            given[name] = (rng.below(2),)
    context.outputs = 2
    shape = context.dims(1)
    return _ScanPlan(axis, shape[:axis] + shape[axis + 1 :])


def _state(context: NodeContext) -> Shape:
    shape: Shape = context.plan.state
    return shape


def _scan_body(context: NodeContext) -> Subgraph:
    builder, type_ = Builder(context.opset), TensorType(context.dtype, context.plan.state)
    state = Value(builder.placeholder(type_), Interval(-2, 2))
    part = Value(builder.placeholder(type_), context.range(1))
    after = build_bounded_chain(context.rng, builder, state, (state, part))
    collected = build_chain(context.rng, builder, part, (state, part))
    context.plan.out = collected.range
    return Subgraph(builder.finish((after.edge, collected.edge)))


def _axis_of(context: NodeContext, name: str, number: int) -> int:
    axes: tuple[int, ...] | None = context.get(name)
    return axes[number] if axes else 0


def _scan(context: NodeContext) -> tuple[TensorType, ...]:
    body, count = _body(context, "body"), context.get("num_scan_inputs")
    first = min(context.operator.captured, len(body.captures))
    states = context.degree - first - count
    results = _results(body.graph)
    scanned = context.type(first + states)
    length = None if scanned.shape is None else scanned.shape[_axis_of(context, "scan_input_axes", 0)]
    found = []
    for number, after in enumerate(results):
        if number < states:
            found.append(_merge_branch_types(context.type(first + number), after))
        elif after.shape is None:
            found.append(after)
        else:
            axis = _axis_of(context, "scan_output_axes", number - states)
            axis += after.rank + 1 if axis < 0 else 0
            found.append(TensorType(after.dtype, (*after.shape[:axis], length, *after.shape[axis:])))
    return tuple(found)


# --- entries ----------------------------------------------------------------------------------------------

# bfloat16 may come out of a body from opset 16 on.
for _since, _dtypes in ((13, NARROW), (16, FLOATS)):
    register(
        OperatorSpec("If", _since, dtypes=_dtypes, captured=2, plan=_branches,
                     input_specs=(PRIMARY_INPUT, DataInput(primary_shape),
                                  DataInput(lambda context: (), dtype="bool")),
                     attribute_specs=(AttributeSpec("then_branch", Computed(_branch)),
                                      AttributeSpec("else_branch", Computed(_branch))), infer=_if,
                     values=_if_values),
        OperatorSpec("Loop", _since, dtypes=_dtypes, captured=1, primary=3, plan=_plan_loop,
                     input_specs=(DataInput(primary_shape),
                                  ConstantInput(lambda context: make_scalar("int64", context.plan.most)),
                                  ConstantInput(_initial_states), PRIMARY_INPUT),
                     attribute_specs=(AttributeSpec("body", Computed(_loop_body)),), infer=_loop,
                     values=_loop_values),
        OperatorSpec("Scan", max(11, _since), dtypes=_dtypes, primary=1, plan=_slices,
                     ranks=tuple(range(1, 9)),
                     input_specs=(DataInput(_state, within=lambda context: Interval(-2, 2)), PRIMARY_INPUT),
                     attribute_specs=(AttributeSpec("num_scan_inputs", Choice(1)),
                                      planned_attribute("scan_input_axes"),
                                      planned_attribute("scan_output_axes"),
                                      planned_attribute("scan_input_directions"),
                                      planned_attribute("scan_output_directions"),
                                      AttributeSpec("body", Computed(_scan_body))), infer=_scan,
                     values=lambda context: (hull((context.range(0), _UNIT)), context.plan.out)),
    )  # fmt: skip
