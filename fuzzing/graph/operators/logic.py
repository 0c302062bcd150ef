"""Logic on truth values and on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import BOOLEAN, WHOLE, Interval, cut, whole
from fuzzing.graph.operator import LEAD, Data, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import companion, together
from fuzzing.graph.site import Site
from fuzzing.graph.types import BOOL, INTEGERS, SIGNED, UNSIGNED, TensorType

#: The numbers that 53 bits tell: more of them are not carried through a graph.
_BITS = Interval(-(1 << 53) + 1, (1 << 53) - 1)


def _bits(type_: TensorType) -> Interval:
    return cut(WHOLE[type_.dtype], _BITS)


def _power(number: float) -> int:
    """The least power of two that is larger than a number that is not negative."""
    return 1 << int(number).bit_length()


def _any_bits(site: Site) -> Interval:
    """What has no more bits than either input."""
    inputs = (site.range(0), site.range(1))
    high = max(_power(max(item.high, -item.low - 1, 0)) for item in inputs) - 1
    return Interval(-high - 1 if any(item.low < 0 for item in inputs) else 0, high)


def _common_bits(site: Site) -> Interval:
    """What is in both is no more than what is in the one that is not negative."""
    caps = [item.high for item in (site.range(0), site.range(1)) if item.low >= 0]
    return Interval(0, min(caps)) if caps else _any_bits(site)


def _binary(
    name: str,
    since: int,
    dtypes: tuple[str, ...],
    values: Callable[[Site], Interval],
    torch: str,
) -> Operator:
    return Operator(
        name,
        since,
        slots=(LEAD, Data(companion, within=lambda site: _bits(site.x))),
        infer=together,
        values=values,
        within=_bits,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch=torch,
    )


def _complement(site: Site) -> Interval:
    low, high = site.range(0)
    ones = WHOLE[site.dtype].high if site.dtype in UNSIGNED else -1
    return Interval(ones - high, ones - low)


def _room(site: Site) -> Interval:
    """So many bits to the left as the type has left, or to the right as it has."""
    high = WHOLE[site.dtype].high
    if site.get("direction") == "RIGHT":
        return Interval(0, int(site.dtype[len("uint") :]) - 1)
    return Interval(0, int(high).bit_length() - max(1, int(site.range(0).high).bit_length()))


def _shifted(site: Site) -> Interval:
    (low, high), (least, most) = site.range(0), site.range(1)
    if site.get("direction") == "RIGHT":
        return Interval(int(low) >> int(most), int(high) >> int(least))
    return Interval(int(low) << int(least), int(high) << int(most))


def _shift_text(site: Site, names: Sequence[str]) -> str:
    return f"torch.bitwise_{str(site.get('direction')).lower()}_shift({names[0]}, {names[1]})"


register(
    _binary("And", 7, BOOL, lambda site: BOOLEAN, "torch.logical_and({0}, {1})"),
    _binary("Or", 7, BOOL, lambda site: BOOLEAN, "torch.logical_or({0}, {1})"),
    _binary("Xor", 7, BOOL, lambda site: BOOLEAN, "torch.logical_xor({0}, {1})"),
    _binary("BitwiseAnd", 18, INTEGERS, _common_bits, "torch.bitwise_and({0}, {1})"),
    _binary("BitwiseOr", 18, INTEGERS, _any_bits, "torch.bitwise_or({0}, {1})"),
    _binary("BitwiseXor", 18, INTEGERS, _any_bits, "torch.bitwise_xor({0}, {1})"),
    Operator("Not", 1, values=lambda site: BOOLEAN, within=whole, dtypes=BOOL, empty=True, dynamic=True,
             torch="torch.logical_not({0})"),
    # Not of uint64, whose complements have 64 bits: see _BITS.
    Operator("BitwiseNot", 18, values=_complement, within=_bits, dtypes=SIGNED + UNSIGNED[:-1], empty=True,
             dynamic=True, torch="torch.bitwise_not({0})"),
    Operator("BitShift", 11, slots=(LEAD, Data(companion, within=_room)), infer=together, values=_shifted,
             within=_bits, dtypes=UNSIGNED, empty=True, dynamic=True,
             settings=(Setting("direction", Choice("LEFT", "RIGHT")),), torch=_shift_text),
)  # fmt: skip
