"""Logic on booleans and on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import Choice
from fuzzing.graph.intervals import BOOLEAN, FULL_RANGES, Interval, full_range, intersect
from fuzzing.graph.operator_spec import PRIMARY_INPUT, AttributeSpec, DataInput, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast_type, draw_further_shape
from fuzzing.graph.types import BOOL, INTEGERS, SIGNED, UNSIGNED, TensorType

#: The numbers that 53 bits hold: more of them are not carried through a graph.
_BITS = Interval(-(1 << 53) + 1, (1 << 53) - 1)


def _bits(type_: TensorType) -> Interval:
    return intersect(FULL_RANGES[type_.dtype], _BITS)


def _power(number: float) -> int:
    return 1 << int(number).bit_length()


def _any_bits(context: NodeContext) -> Interval:
    inputs = (context.range(0), context.range(1))
    high = max(_power(max(item.high, -item.low - 1, 0)) for item in inputs) - 1
    return Interval(-high - 1 if any(item.low < 0 for item in inputs) else 0, high)


def _common_bits(context: NodeContext) -> Interval:
    """The bitwise and is no more than a nonnegative operand."""
    caps = [item.high for item in (context.range(0), context.range(1)) if item.low >= 0]
    return Interval(0, min(caps)) if caps else _any_bits(context)


def _binary(
    name: str,
    since: int,
    dtypes: tuple[str, ...],
    values: Callable[[NodeContext], Interval],
    torch: str,
) -> OperatorSpec:
    return OperatorSpec(
        name,
        since,
        input_specs=(PRIMARY_INPUT, DataInput(draw_further_shape, within=lambda context: _bits(context.x))),
        infer=broadcast_type,
        values=values,
        within=_bits,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch=torch,
    )


def _complement(context: NodeContext) -> Interval:
    low, high = context.range(0)
    ones = FULL_RANGES[context.dtype].high if context.dtype in UNSIGNED else -1
    return Interval(ones - high, ones - low)


def _room(context: NodeContext) -> Interval:
    """Shifts left by the free bits of the type at most, right by its width at most."""
    high = FULL_RANGES[context.dtype].high
    if context.get("direction") == "RIGHT":
        return Interval(0, int(context.dtype[len("uint") :]) - 1)
    return Interval(0, int(high).bit_length() - max(1, int(context.range(0).high).bit_length()))


def _shifted(context: NodeContext) -> Interval:
    (low, high), (least, most) = context.range(0), context.range(1)
    if context.get("direction") == "RIGHT":
        return Interval(int(low) >> int(most), int(high) >> int(least))
    return Interval(int(low) << int(least), int(high) << int(most))


def _shift_text(context: NodeContext, names: Sequence[str]) -> str:
    return f"torch.bitwise_{str(context.get('direction')).lower()}_shift({names[0]}, {names[1]})"


register(
    _binary("And", 7, BOOL, lambda context: BOOLEAN, "torch.logical_and({0}, {1})"),
    _binary("Or", 7, BOOL, lambda context: BOOLEAN, "torch.logical_or({0}, {1})"),
    _binary("Xor", 7, BOOL, lambda context: BOOLEAN, "torch.logical_xor({0}, {1})"),
    _binary("BitwiseAnd", 18, INTEGERS, _common_bits, "torch.bitwise_and({0}, {1})"),
    _binary("BitwiseOr", 18, INTEGERS, _any_bits, "torch.bitwise_or({0}, {1})"),
    _binary("BitwiseXor", 18, INTEGERS, _any_bits, "torch.bitwise_xor({0}, {1})"),
    OperatorSpec("Not", 1, values=lambda context: BOOLEAN, within=full_range, dtypes=BOOL, empty=True,
                 dynamic=True, torch="torch.logical_not({0})"),
    # Not of uint64, whose complements have 64 bits: see _BITS.
    OperatorSpec("BitwiseNot", 18, values=_complement, within=_bits, dtypes=SIGNED + UNSIGNED[:-1],
                 empty=True, dynamic=True, torch="torch.bitwise_not({0})"),
    OperatorSpec("BitShift", 11, input_specs=(PRIMARY_INPUT, DataInput(draw_further_shape, within=_room)),
                 infer=broadcast_type, values=_shifted, within=_bits, dtypes=UNSIGNED, empty=True,
                 dynamic=True, attribute_specs=(AttributeSpec("direction", Choice("LEFT", "RIGHT")),),
                 torch=_shift_text),
)  # fmt: skip
