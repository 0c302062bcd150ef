"""The shapes and parameters calculator: an operator of the corpus on given edges, with drawn parameters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from fuzzing.errors import InternalError
from fuzzing.generate.graph_search.blocks import BlockOperator
from fuzzing.generate.graph_search.draft import GraphDraft
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import FULL_RANGES, MODERATE_RANGES, Interval
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.operator_spec import DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators.arithmetic import broadcast, draw_further_shape, draw_second_shape
from fuzzing.graph.types import Shape, TensorType

#: Draws of an operator's parameters until they fit the corpus: Depthwise needs five in the mean.
_DRAWS = 200
#: The largest rank of data that is not forced to another one.
_MOST_RANK = 5
#: Lengths that a parameter may have at most where it is mutated, in place of 5.
_MUTATED_DIM = 9
#: How often data of another type is cast back to float32, though the operator takes it.
_CAST_BACK = 0.5
_FLOAT = "float32"
_PRESERVING = ("AveragePool", "Conv", "MaxPool")


class Calculator:
    """Adds operators of the corpus to a draft."""

    def __init__(self, draft: GraphDraft) -> None:
        self._draft = draft

    def add(self, operator: BlockOperator, edges: Sequence[int], *, mutated: bool) -> tuple[int, Hashable]:
        """Adds the operator on these data edges; returns its output's edge, and its vector.

        mutated  parameters are drawn from all that are valid; else windows keep the spatial size
        """
        given = [edges[0], edges[0]] if operator.same else list(edges)
        edge, vector = self._add_node(operator, operator.onnx[0], given, mutated)
        plain = BlockOperator(operator.name, operator.onnx)
        for op in operator.onnx[1:]:
            edge, _ = self._add_node(plain, op, [edge], mutated)
        return edge, vector

    def _add_node(
        self, operator: BlockOperator, op: str, edges: list[int], mutated: bool
    ) -> tuple[int, Hashable]:
        draft = self._draft
        spec = draft.spec(op)
        positions = _data_positions(spec, len(edges))
        data = dict(zip(positions, edges, strict=True))
        data[spec.primary] = self._prepare_primary(spec, operator, data[spec.primary])
        if operator.same:
            data = dict.fromkeys(positions, data[spec.primary])
        context = self._draw_parameters(spec, operator, data[spec.primary], len(edges), mutated)
        for position in range(context.degree):
            if position != spec.primary:
                self._give_input(context, operator, position, data.get(position))
        shapes = tuple(context.types[position] for position in positions)
        return draft.append(context)[0], (shapes, *_parameters(context, positions))

    def _prepare_primary(self, spec: OperatorSpec, operator: BlockOperator, edge: int) -> int:
        """The edge with an element type, rank, shape and values that the operator takes."""
        draft, rng = self._draft, self._draft.rng
        dtype = draft.type(edge).dtype
        back = dtype != _FLOAT and (operator.rank is not None or rng.chance(_CAST_BACK))  # images are floats
        if dtype not in spec.dtypes or (back and _FLOAT in spec.dtypes):
            edge = draft.cast(edge, _FLOAT if _FLOAT in spec.dtypes else spec.dtypes[0])
        rank = operator.rank or _nearest_rank(spec, draft.type(edge).rank)
        edge = draft.reshape_to_rank(edge, rank)
        lengths = draft.type(edge).lengths
        if spec.takes is not None and not spec.takes(lengths):
            if 1 + rank in spec.ranks and operator.rank is None and spec.takes((1, *lengths)):
                edge = draft.reshape(edge, (1, *lengths))
            elif spec.draw_shape is not None:
                edge = draft.fit(edge, spec.draw_shape(rng, draft.limits))
        return draft.clip(edge, spec.within(draft.type(edge)))

    def _draw_parameters(
        self, spec: OperatorSpec, operator: BlockOperator, primary: int, given: int, mutated: bool
    ) -> NodeContext:
        draft = self._draft
        for _ in range(_DRAWS):
            degree = operator.arity or _draw_degree(spec, operator, given, draft)
            context = draft.context(spec.name, degree)
            if mutated:
                context.limits = replace(draft.limits, max_dim=_MUTATED_DIM)
            draft.use_edge(context, spec.primary, primary)
            context.unpack_primary()
            if spec.plan is not None:
                context.plan = spec.plan(context)
            for setting in spec.attribute_specs:
                if not (setting.omit and draft.rng.chance(setting.omit)):
                    context.attributes[setting.name] = setting.domain.draw(context)
            if _fits(operator, context):
                if spec.name in _PRESERVING and not mutated:
                    _preserve_size(context)
                return context
        raise InternalError(f"{operator.name}: none of {_DRAWS} draws of {spec.name} fits the corpus")

    def _give_input(
        self, context: NodeContext, operator: BlockOperator, position: int, edge: int | None
    ) -> None:
        draft, slot = self._draft, context.operator.input_spec(position)
        if position in operator.constants:
            made = draft.constant(make_scalar(context.dtype, operator.constants[position]))
            draft.ranges[made] = Interval(operator.constants[position], operator.constants[position])
            draft.use_edge(context, position, made)
        elif isinstance(slot, DataInput):
            found = self._weight(context, operator, slot) if edge is None else self._data(context, slot, edge)
            draft.use_edge(context, position, found)
        else:
            constant = slot.value(context)
            if constant is not None:
                draft.use_edge(context, position, draft.constant(constant))

    def _weight(self, context: NodeContext, operator: BlockOperator, slot: DataInput) -> int:
        shape = slot.shape(context)
        if operator.weights == "channels":
            shape = (context.shape[1], *[1] * (context.rank - 2)) if context.rank > 1 else context.shape
        lengths = tuple(1 if dim is None else dim for dim in shape)
        return self._draft.weight(TensorType(_dtype(context, slot), lengths), _allowed(context, slot))

    def _data(self, context: NodeContext, slot: DataInput, edge: int) -> int:
        """The edge as the operator takes it at a further input."""
        draft = self._draft
        edge = draft.cast(edge, _dtype(context, slot))
        edge = draft.fit(edge, self._shape(context, slot, draft.type(edge)))
        return draft.clip(edge, _allowed(context, slot))

    def _shape(self, context: NodeContext, slot: DataInput, type_: TensorType) -> Shape:
        """The shape that the input must have: its own, if the operator broadcasts it."""
        if slot.shape in (draw_second_shape, draw_further_shape):
            shapes = [found.lengths for found in context.types if found is not None]
            if _broadcasts(shapes, type_.lengths, context.limits.max_elements):
                return type_.lengths
            return tuple(dim for dim in broadcast(*shapes))
        shape = slot.shape(context)
        if context.operator.name == "Concat":
            axis = context.axis()
            capacity = context.limits.max_elements // max(1, context.x.elements)
            own = type_.lengths[axis] if type_.rank == context.rank else 1
            length = own if own * context.degree <= context.shape[axis] * capacity else 1  # type: ignore[operator]
            return (*context.shape[:axis], length, *context.shape[axis + 1 :])
        return shape


def _data_positions(spec: OperatorSpec, count: int) -> list[int]:
    """The first `count` inputs that carry data; all further ones do where the last input is variadic."""
    found = [place for place, slot in enumerate(spec.input_specs) if isinstance(slot, DataInput)]
    return (found + list(range(len(spec.input_specs), len(spec.input_specs) + count)))[:count]


def _draw_degree(spec: OperatorSpec, operator: BlockOperator, given: int, draft: GraphDraft) -> int:
    if given > 1 and given in spec.degrees:
        return given
    least = max(given, 1 + max(operator.constants, default=0))
    return draft.rng.choice([degree for degree in spec.degrees if degree >= least])


def _nearest_rank(spec: OperatorSpec, rank: int) -> int:
    allowed = [known for known in spec.ranks if known <= _MOST_RANK]
    return min(allowed, key=lambda known: (abs(known - rank), known))


def _fits(operator: BlockOperator, context: NodeContext) -> bool:
    for name, values in operator.attributes.items():
        wanted = [context.shape[1] if value == "channels" else value for value in values]
        if context.get(name) not in wanted:
            return False
    return True


def _preserve_size(context: NodeContext) -> None:
    """Sets the padding with which windows of step 1 keep the spatial size.

    oH = ⌊(iH + pads - dH·(fH - 1) - 1) / 1⌋ + 1 = iH for pads = dH·(fH - 1), which is the standard formula;
    the paper's omits the -1 and the +1. Pools get no dilation: a window of padding alone has no average.
    """
    given = context.attributes
    if context.operator.name == "Conv":
        kernel: Sequence[int] = context.plan[2:]
    else:
        kernel = given["kernel_shape"]  # type: ignore[assignment]
        given.pop("dilations", None)
    dilations: Sequence[int] = given.get("dilations") or (1,) * len(kernel)  # type: ignore[assignment]
    for name in ("auto_pad", "strides", "ceil_mode"):
        given.pop(name, None)
    both = [dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True)]
    begins = [pad // 2 for pad in both]
    given["pads"] = (*begins, *[pad - begin for pad, begin in zip(both, begins, strict=True)])


def _dtype(context: NodeContext, slot: DataInput) -> str:
    if slot.dtype is None:
        return context.dtype
    return slot.dtype if isinstance(slot.dtype, str) else slot.dtype(context)


def _allowed(context: NodeContext, slot: DataInput) -> Interval:
    if slot.within is not None:
        return slot.within(context)
    dtype = _dtype(context, slot)
    return MODERATE_RANGES[dtype] if dtype != "bool" else FULL_RANGES[dtype]


def _broadcasts(shapes: Sequence[tuple[int, ...]], other: tuple[int, ...], most: int) -> bool:
    """Whether all shapes broadcast together to a tensor of at most `most` elements."""
    elements = 1
    rank = max(len(other), *map(len, shapes))
    for dims in zip(*[(1,) * (rank - len(shape)) + tuple(shape) for shape in (*shapes, other)], strict=True):
        longer = {dim for dim in dims if dim != 1}
        if len(longer) > 1:
            return False
        elements *= max(longer, default=1)
    return elements <= most and rank <= _MOST_RANK


def _parameters(context: NodeContext, data: Sequence[int]) -> tuple[Hashable, ...]:
    """The attributes and the constant inputs; of weights only the shapes."""
    attributes: list[tuple[str, Attribute]] = sorted(context.attributes.items(), key=lambda item: item[0])
    inputs: list[Hashable] = []
    for position in range(context.degree):
        if position in data:
            continue
        constant = context.constants[position]
        slot = context.operator.input_spec(position)
        if isinstance(constant, Constant) and not isinstance(slot, DataInput):
            inputs.append(constant.key())
        else:
            inputs.append(context.types[position])
    return (tuple(attributes), tuple(inputs))
