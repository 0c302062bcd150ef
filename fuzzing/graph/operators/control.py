"""Operators with bodies: a branch, a loop, a scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import BOOLEAN, Interval, hull
from fuzzing.graph.ir import Body, Builder, Constant, Graph
from fuzzing.graph.literals import scalar
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting, lead_shape, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.bodies import Value, bounded, chain
from fuzzing.graph.operators.sums import room
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, Dim, Shape, TensorType

_UNIT = Interval(-1, 1)
_ITERATION, _CONDITION = TensorType("int64", ()), TensorType("bool", ())


def _either(one: TensorType, other: TensorType) -> TensorType:
    """What is either of two types: of a length that differs, only the data tell."""
    if one.shape is None or other.shape is None or one.rank != other.rank:
        return TensorType(one.dtype, None)
    pairs = zip(one.shape, other.shape, strict=True)
    return TensorType(one.dtype, tuple([a if a == b else None for a, b in pairs]))


def _results(graph: Graph) -> list[TensorType]:
    return [graph.types[edge] for edge in graph.outputs]


def _body(site: Site, name: str) -> Body:
    body = site.get(name)
    if not isinstance(body, Body):
        raise TypeError(f"{site.operator.name}'s {name} is no graph")
    return body


# --- If ---------------------------------------------------------------------------------------------------


@dataclass
class _Ranges:
    """What the bodies made so far give: the bounds on each output, body by body."""

    found: list[list[Interval]] = field(default_factory=list)


def _branches(site: Site) -> _Ranges:
    site.outputs = site.draws.choice((1, 1, 2))
    return _Ranges()


def _branch(site: Site) -> Body:
    """Each branch works on the same two edges of the enclosing graph."""
    builder = Builder(site.opset)
    values = [Value(builder.capture(site.x), site.range(position)) for position in range(2)]
    found = [chain(site.draws, builder, site.draws.choice(values), values) for _ in range(site.outputs)]
    site.plan.found.append([value.range for value in found])
    captures = tuple([edge for edge in site.edges[:2] if edge is not None])
    return Body(builder.finish(tuple([value.edge for value in found])), captures)


def _if(site: Site) -> tuple[TensorType, ...]:
    branches = (_body(site, "then_branch"), _body(site, "else_branch"))
    pairs = zip(*[_results(branch.graph) for branch in branches], strict=True)
    return tuple([_either(one, other) for one, other in pairs])


def _if_values(site: Site) -> tuple[Interval, ...]:
    return tuple([hull(pair) for pair in zip(*site.plan.found, strict=True)])


# --- Loop -------------------------------------------------------------------------------------------------


@dataclass
class _Turns:
    """How a loop goes on.

    most   its trip count
    until  from which iteration on the body asks for an end; -1: never
    scan   the bounds on what is collected; None if nothing is
    """

    most: int
    until: int = -1
    scan: Interval | None = None


def _turns(site: Site) -> _Turns:
    draws, limits = site.draws, site.limits
    count = draws.between(0, 3)
    grown = site.rank < limits.max_rank and count * site.x.elements <= room(site)
    if grown and (count or limits.min_dim == 0) and draws.chance(0.5):
        site.outputs = 2
        return _Turns(count)
    return _Turns(count, draws.below(3) if draws.chance(0.3) else -1)


def _loop_body(site: Site) -> Body:
    """The carried value goes through a few operators that end in a bounded one."""
    builder, plan = Builder(site.opset), site.plan
    iteration, condition = builder.placeholder(_ITERATION), builder.placeholder(_CONDITION)
    carried = Value(builder.placeholder(site.x), hull((site.range(3), _UNIT)))
    outside = Value(builder.capture(site.x), site.range(0))
    if plan.until < 0:
        (onward,) = builder.node("Identity", (condition,), (_CONDITION,))
    else:
        last = builder.constant(scalar("int64", plan.until))
        (onward,) = builder.node("Less", (iteration, last), (_CONDITION,))
    outputs = [onward, bounded(site.draws, builder, carried, (carried, outside)).edge]
    if site.outputs == 2:
        collected = chain(site.draws, builder, carried, (carried, outside))
        plan.scan = collected.range
        outputs.append(collected.edge)
    captures = tuple([edge for edge in site.edges[:1] if edge is not None])
    return Body(builder.finish(tuple(outputs)), captures)


def _loop(site: Site) -> tuple[TensorType, ...]:
    body = _body(site, "body")
    first = min(site.operator.captured, len(body.captures))  # of the node's own inputs
    carried = site.types[first + 2 :]
    _, *results = _results(body.graph)
    found = []
    for before, after in zip_longest(carried, results):
        if before is not None:
            found.append(_either(before, after))
        else:
            length = _trips(site, first, body.graph)
            found.append(TensorType(after.dtype, None if after.shape is None else (length, *after.shape)))
    return tuple(found)


def _trips(site: Site, first: int, graph: Graph) -> Dim:
    """How often the body runs: known if the count is, and the condition is handed on from true to true."""
    most = site.constants[first] if site.given(first) else None
    if most is None:
        return None
    if site.given(first + 1):
        begins = site.constants[first + 1]
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


def _loop_values(site: Site) -> tuple[Interval, ...]:
    final = hull((site.range(3), _UNIT))
    return (final,) if site.plan.scan is None else (final, site.plan.scan)


def _begins(site: Site) -> Constant | None:
    return scalar("bool", True) if site.draws.chance(0.5) else None


# --- Scan -------------------------------------------------------------------------------------------------


@dataclass
class _Slices:
    """What a scan goes over.

    axis   of its input
    state  the shape of a slice, and of what is carried from slice to slice
    out    the bounds on what is collected
    """

    axis: int
    state: tuple[int, ...]
    out: Interval = BOOLEAN


def _slices(site: Site) -> _Slices:
    draws, given = site.draws, site.attributes
    axis = draws.below(site.rank) if draws.chance(0.5) else 0
    if axis or draws.chance(0.2):
        given["scan_input_axes"] = (axis - site.rank if draws.chance(0.2) else axis,)
    if draws.chance(0.3):
        given["scan_output_axes"] = (draws.between(-site.rank, site.rank - 1),)
    for name in ("scan_input_directions", "scan_output_directions"):
        if draws.chance(0.3):
            given[name] = (draws.below(2),)
    site.outputs = 2
    shape = site.dims(1)
    return _Slices(axis, shape[:axis] + shape[axis + 1 :])


def _state(site: Site) -> Shape:
    shape: Shape = site.plan.state
    return shape


def _scan_body(site: Site) -> Body:
    builder, type_ = Builder(site.opset), TensorType(site.dtype, site.plan.state)
    state = Value(builder.placeholder(type_), Interval(-2, 2))
    part = Value(builder.placeholder(type_), site.range(1))
    after = bounded(site.draws, builder, state, (state, part))
    collected = chain(site.draws, builder, part, (state, part))
    site.plan.out = collected.range
    return Body(builder.finish((after.edge, collected.edge)))


def _axis_of(site: Site, name: str, number: int) -> int:
    axes: tuple[int, ...] | None = site.get(name)
    return axes[number] if axes else 0


def _scan(site: Site) -> tuple[TensorType, ...]:
    body, count = _body(site, "body"), site.get("num_scan_inputs")
    first = min(site.operator.captured, len(body.captures))
    states = site.degree - first - count
    results = _results(body.graph)
    scanned = site.type(first + states)
    length = None if scanned.shape is None else scanned.shape[_axis_of(site, "scan_input_axes", 0)]
    found = []
    for number, after in enumerate(results):
        if number < states:
            found.append(_either(site.type(first + number), after))
        elif after.shape is None:
            found.append(after)
        else:
            axis = _axis_of(site, "scan_output_axes", number - states)
            axis += after.rank + 1 if axis < 0 else 0
            found.append(TensorType(after.dtype, (*after.shape[:axis], length, *after.shape[axis:])))
    return tuple(found)


# --- entries ----------------------------------------------------------------------------------------------

# bfloat16 may come out of a body from opset 16 on.
for _since, _dtypes in ((13, NARROW), (16, FLOATS)):
    register(
        Operator("If", _since, dtypes=_dtypes, captured=2, plan=_branches,
                 slots=(LEAD, Data(lead_shape), Data(lambda site: (), dtype="bool")),
                 settings=(Setting("then_branch", Made(_branch)), Setting("else_branch", Made(_branch))),
                 infer=_if, values=_if_values),
        Operator("Loop", _since, dtypes=_dtypes, captured=1, lead=3, plan=_turns,
                 slots=(Data(lead_shape), Auxiliary(lambda site: scalar("int64", site.plan.most)),
                        Auxiliary(_begins), LEAD),
                 settings=(Setting("body", Made(_loop_body)),), infer=_loop, values=_loop_values),
        Operator("Scan", max(11, _since), dtypes=_dtypes, lead=1, plan=_slices, ranks=tuple(range(1, 9)),
                 slots=(Data(_state, within=lambda site: Interval(-2, 2)), LEAD),
                 settings=(Setting("num_scan_inputs", Choice(1)), planned("scan_input_axes"),
                           planned("scan_output_axes"), planned("scan_input_directions"),
                           planned("scan_output_directions"), Setting("body", Made(_scan_body))),
                 infer=_scan,
                 values=lambda site: (hull((site.range(0), _UNIT)), site.plan.out)),
    )  # fmt: skip
