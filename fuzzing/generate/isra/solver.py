"""Isra's solver: graphs in which every node satisfies its operator's specification, without backtracking.

Each node is instantiated in the paper's order: in-degree, first input, attributes, remaining inputs,
outputs. Every choice has a non-empty range whatever was chosen before it, so nothing is ever taken back or
thrown away; and as edges only come from earlier nodes, a new node cannot invalidate an old one.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuzzing.draws import Draws
from fuzzing.errors import InternalError, UsageError
from fuzzing.generate.closing import joined
from fuzzing.generate.generators import register_generator
from fuzzing.generate.isra.leads import Leads
from fuzzing.generate.isra.pool import Found, Pool
from fuzzing.generate.isra.settings import Settings
from fuzzing.graph import intervals, operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.ir import Builder, Graph
from fuzzing.graph.operator import Data, Operator
from fuzzing.graph.site import Site
from fuzzing.graph.types import Shape, TensorType


@dataclass(frozen=True)
class Generated:
    """A graph, and where the elements of its data must come from for its outputs to stay finite.

    ranges  of every edge of the graph that a placeholder or an operator gives
    """

    graph: Graph
    ranges: dict[int, Interval]


@register_generator("isra")
class Solver:
    """Generates graphs under one set of settings; raises UsageError if no operator is left."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        known = operators.at(settings.opset)
        if settings.patterns:
            known = known | operators.patterns(settings.opset)
        unknown = [name for name in settings.operators if name not in known]
        if unknown:
            raise UsageError(
                f"no specification at opset {settings.opset} of: {', '.join(unknown)}; "
                "leave them out of --operators"
            )
        wanted = [known[name] for name in known if not settings.operators or name in settings.operators]
        without = dict(settings.left_out)
        leads = {one: Leads(one, settings, without.get(one.name, ())) for one in wanted}
        self.leads = {one: found for one, found in leads.items() if found.usable}
        self.operators = list(self.leads)
        if not self.operators:
            raise UsageError(f"no operator takes {', '.join(settings.dtypes)} at opset {settings.opset}")

    def generate(self, seed: int) -> Generated:
        """The graph of this seed."""
        return _Model(self, Draws(seed)).generate()


class _Model:
    def __init__(self, solver: Solver, draws: Draws) -> None:
        self._solver = solver
        self._settings = solver.settings
        self._limits = solver.settings.limits
        self._draws = draws
        self._builder = Builder(solver.settings.opset)
        self._pool = Pool(draws)
        self._ranges: dict[int, Interval] = {}
        self._unused: dict[int, None] = {}  # in the order of their making

    def generate(self) -> Generated:
        draws = self._draws
        count = draws.between(*self._settings.nodes)
        dtype = draws.choice(self._settings.dtypes)
        shape = self._lengths(draws.between(max(1, self._limits.min_rank), self._limits.max_rank))
        edge, type_, range_ = self._placeholder(TensorType(dtype, shape), intervals.WHOLE[dtype])
        self._pool.add(edge, type_, range_)
        for _ in range(count):
            self._node(draws.choice(self._solver.operators))
        return Generated(self._finish(), self._ranges)

    def _node(self, operator: Operator) -> None:
        leads = self._solver.leads[operator]
        degree = self._draws.choice(leads.degrees)
        site = Site(operator, self._settings.opset, self._limits, self._draws, degree)
        if operator.lead >= 0:
            self._take(site, operator.lead, self._lead(leads, operator))
            site.led()
        if operator.plan is not None:
            site.plan = operator.plan(site)
        for position in range(operator.captured):
            self._input(site, position)
        for setting in operator.settings:
            if not (setting.omit and self._draws.chance(setting.omit)):
                site.attributes[setting.name] = setting.domain.draw(site)
        for position in range(operator.captured, site.degree):
            self._input(site, position)
        self._append(site)

    def _lead(self, leads: Leads, operator: Operator) -> Found:
        draws = self._draws
        if draws.chance(self._settings.picking_rate):
            found = self._pool.lead(leads.kinds, leads.fits)
            if found is not None:
                return found
        type_ = TensorType(draws.choice(leads.dtypes), leads.fresh(draws))
        return self._placeholder(type_, operator.within(type_))

    def _input(self, site: Site, position: int) -> None:
        if position == site.operator.lead:
            return
        slot = site.operator.slot(position)
        if slot.omit and position < site.degree - 1 and self._draws.chance(slot.omit):
            return
        if isinstance(slot, Data):
            self._take(site, position, self._data(site, slot))
            return
        constant = slot.value(site)
        if constant is None:
            return
        site.edges[position] = self._builder.constant(constant)
        site.types[position] = constant.type
        site.constants[position] = constant

    def _data(self, site: Site, slot: Data) -> Found:
        shape = slot.shape(site)
        dtype = slot.dtype if isinstance(slot.dtype, str) else slot.dtype(site) if slot.dtype else site.dtype
        allowed = intervals.MODEST[dtype] if slot.within is None else slot.within(site)
        if self._draws.chance(self._settings.picking_rate):
            found = self._pool.match(dtype, shape, allowed)
            if found is not None:
                return found
        between, limits = self._draws.between, self._limits
        lengths = [between(limits.min_dim, limits.max_dim) if dim is None else dim for dim in shape]
        return self._placeholder(TensorType(dtype, tuple(lengths)), allowed)

    def _take(self, site: Site, position: int, found: Found) -> None:
        edge, type_, range_ = found
        site.edges[position] = edge
        site.types[position] = type_
        site.ranges[position] = range_
        self._unused.pop(edge, None)

    def _append(self, site: Site) -> None:
        operator = site.operator
        types = operator.infer(site)
        ranges = operator.intervals(site, len(types))
        if operator.expand is not None:
            outputs = operator.expand(self._builder, site)
        else:
            edges = tuple(site.edges[operator.captured :])
            while edges and edges[-1] is None:  # nothing follows it: it need not be said to be missing
                edges = edges[:-1]
            outputs = self._builder.node(operator.name, edges, types, site.attributes, operator.domain)
        for edge, type_, range_ in zip(outputs, types, ranges, strict=True):
            if not intervals.WHOLE[type_.dtype].holds(range_):
                raise InternalError(
                    f"{operator.name} gives {type_} in {range_}, more than its type may carry"
                )
            self._ranges[edge] = range_
            self._pool.add(edge, type_, range_)
            self._unused[edge] = None

    def _lengths(self, rank: int) -> Shape:
        between, limits = self._draws.between, self._limits
        return tuple([between(limits.min_dim, limits.max_dim) for _ in range(rank)])

    def _placeholder(self, type_: TensorType, allowed: Interval) -> Found:
        range_ = intervals.fresh(self._draws, allowed, type_.dtype)
        edge = self._builder.placeholder(type_)
        self._ranges[edge] = range_
        return edge, type_, range_

    def _finish(self) -> Graph:
        graph = self._builder.finish(tuple(self._unused))
        return joined(graph) if self._settings.joined else graph
