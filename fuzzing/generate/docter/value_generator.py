"""One attempt at a call: each parameter's value in turn, drawn within its constraints."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from fuzzing.cases import Dtype, Recipe, Tensor
from fuzzing.generate.docter import checker, value_forms
from fuzzing.generate.docter.calls import Call, list_tensors
from fuzzing.generate.docter.expressions import ExpressionError, UnboundError, evaluate, names_in
from fuzzing.generate.docter.parameter_order import find_multiples
from fuzzing.generate.docter.record import Parameter, Range, Record
from fuzzing.generate.docter.symbol_bindings import Scope, resolve_star
from fuzzing.generate.docter.value_profiles import EPSILON, FLOAT_MAX, INT_RANGE, Profile

Item = TypeVar("Item")
_MAX_ELEMENTS = 1 << 20
_MAX_TEXT = 1023  # characters of a text of no known meaning


class RetryError(Exception):
    """The values drawn so far leave none for the next parameter."""


def choose_item(rng: Random, items: Sequence[Item]) -> Item:
    """One of `items`. Raises RetryError if empty."""
    if not items:
        raise RetryError
    return items[rng.randrange(len(items))]


def draw_int(rng: Random, low: int, high: int) -> int:
    """An integer in [low, high]. Raises RetryError if empty."""
    if low > high:
        raise RetryError
    return low + rng.randrange(high - low + 1)


class CallAttempt:
    """The arguments drawn so far.

    arguments  by parameter
    """

    def __init__(self, record: Record, rng: Random, profile: Profile) -> None:
        self.record, self.rng, self.profile = record, rng, profile
        self.arguments: dict[str, Any] = {}
        self._scope = Scope(Call(record, {}).scope(), record.definitions)
        counts = {len(item.shape.patterns) for item in record.parameters if item.shape}
        self._choice = {count: rng.randrange(count) for count in sorted(counts)}

    def can_draw(self, parameter: Parameter) -> bool:
        """Whether any of the parameter's structures can be drawn."""
        return bool(self._options(parameter))

    def draw(self, parameter: Parameter) -> None:
        """Draws a parameter's value."""
        value = self._value(parameter, choose_item(self.rng, self._options(parameter)))
        self.arguments[parameter.name] = value
        self._scope.values_[parameter.name] = value

    def _options(self, parameter: Parameter) -> list[str]:
        texts = self.profile.strings or bool(parameter.enum)
        found = [option for option in parameter.options if option in _DRAWN and (option != "str" or texts)]
        if parameter.length and self._bound(parameter.length.most) == 0:
            found = [option for option in found if not option.startswith(("list", "tuple"))]
        return found

    def _value(self, parameter: Parameter, option: str) -> Any:
        enum = parameter.enum
        if enum and (option == "str" or not any(isinstance(value, str) for value in enum.values)):
            return choose_item(
                self.rng, [value for value in enum.values if value is not None or not parameter.required]
            )
        if option == "tensor":
            return self._tensor(parameter)
        if option in ("list(tensor)", "tuple(tensor)"):
            return self._tensors(parameter)
        if option.startswith(("list", "tuple")):
            return self._list(parameter, option[option.index("(") + 1 : -1])
        return self._scalar(parameter, option)

    # Numbers and lists --------------------------------------------------------------------------------

    def _scalar(self, parameter: Parameter, option: str) -> Any:
        match option:
            case "bool":
                return self.rng.random() < 0.5
            case "int":
                return self._int(parameter.range, self._divisor(parameter.name))
            case "float":
                return self._float(parameter.range)
            case "complex":
                return complex(self._float(None), self._float(None))
            case "dtype":
                return Dtype(self._any_dtype())
        return "".join(chr(32 + self.rng.randrange(95)) for _ in range(self.rng.randrange(_MAX_TEXT + 1)))

    def _bound(self, text: str | None) -> Any:
        return checker.evaluate_bound(text, self._scope)

    def _int(self, given: Range | None, divisor: int = 1) -> int:
        low, high = self._whole_bounds(given)
        if divisor > 1:  # the bounds are those of a person, a multiple may be larger
            return divisor * draw_int(self.rng, max(1, math.ceil(low / divisor)), max(1, high // divisor, 3))
        return draw_int(self.rng, low, high)

    def _whole_bounds(self, given: Range | None) -> tuple[int, int]:
        low = high = None
        if given is not None:
            low, high = self._bound(given.low), self._bound(given.high)
            low = None if low is None else math.ceil(low)
            high = None if high is None else math.floor(high)
            if low is not None and given.open_low and low == self._bound(given.low):
                low += 1
            if high is not None and given.open_high and high == self._bound(given.high):
                high -= 1
        least, most = self.profile.integers or (-(1 << 31), (1 << 31) - 1)
        if low is not None and high is None:
            return low, low + self.profile.span
        if high is not None and low is None:
            return min(least, high), high
        return (least if low is None else low), (
            most if high is None else min(high, most if low is None or low <= most else high)
        )

    def _float(self, given: Range | None) -> float:
        low, high = self._float_bounds(given, "float64")
        return low + self.rng.random() * (high - low)

    def _float_bounds(self, given: Range | None, dtype: str) -> tuple[float, float]:
        limit = FLOAT_MAX[dtype]
        least, most = self.profile.floats or (-limit / 2, limit / 2)
        low = high = None
        if given is not None:
            low, high = self._bound(given.low), self._bound(given.high)
            low = None if low is None else float(low) + EPSILON * given.open_low * max(1.0, abs(low))
            high = None if high is None else float(high) - EPSILON * given.open_high * max(1.0, abs(high))
        if low is not None and high is None:
            high = max(most, low + 1.0)
        if high is not None and low is None:
            low = min(least, high - 1.0)
        low, high = least if low is None else low, most if high is None else high
        if low > high:
            raise RetryError
        return max(low, -limit), min(high, limit)

    def _list(self, parameter: Parameter, inner: str) -> list[Any]:
        length = parameter.length
        if length is not None:
            least, most = self._bound(length.least), self._bound(length.most)
            count = draw_int(self.rng, int(least or 0), int(self.profile.items if most is None else most))
        else:
            count = draw_int(self.rng, 1, self.profile.items)
        match parameter.form.name if parameter.form else "":
            case value_forms.DISTINCT:
                return self._distinct(parameter, count)
            case value_forms.FACTORS | value_forms.EXPANSION as name:
                return self._lengths_for(parameter, name)
        return [self._scalar(parameter, inner) for _ in range(count)]

    def _distinct(self, parameter: Parameter, count: int) -> list[int]:
        of = parameter.form.of if parameter.form else ""
        rank = max(self._bound(f"ndim({of})") or 0, 1)
        places = list(range(rank))
        picked = [places.pop(self.rng.randrange(len(places))) for _ in range(min(count, rank))]
        return [place - rank if self.rng.random() < 0.5 else place for place in picked]

    def _lengths_for(self, parameter: Parameter, form: str) -> list[int]:
        shape = checker.target_shape(parameter.form.of, self._scope) if parameter.form else None
        if shape is None:
            raise RetryError
        return (
            value_forms.draw_factors(self.rng, math.prod(shape))
            if form == value_forms.FACTORS
            else value_forms.draw_expansion(self.rng, shape)
        )

    # Tensors ------------------------------------------------------------------------------------------

    def _tensors(self, parameter: Parameter) -> list[Any]:
        length = parameter.length
        least, most = (
            (1, self.profile.items)
            if length is None
            else (int(self._bound(length.least) or 0), int(self._bound(length.most) or self.profile.items))
        )
        count = draw_int(self.rng, least, most)
        shape, dtype = self._shape(parameter), self._dtype(parameter)
        return [self._filled(parameter, shape, dtype) for _ in range(count)]

    def _tensor(self, parameter: Parameter) -> Recipe | Tensor:
        return self._filled(parameter, self._shape(parameter), self._dtype(parameter))

    def _filled(self, parameter: Parameter, shape: tuple[int, ...], dtype: str) -> Recipe | Tensor:
        if math.prod(shape) > _MAX_ELEMENTS:
            raise RetryError
        if parameter.form and parameter.form.name in value_forms.FORMS:
            if parameter.form.name != "increasing" and (len(shape) < 2 or shape[-1] != shape[-2]):
                raise RetryError
            return value_forms.make_tensor(parameter.form.name, self.rng, shape, dtype)
        seed = self.rng.getrandbits(64)
        if dtype in FLOAT_MAX:
            low, high = self._float_bounds(parameter.range, dtype)
            return Recipe("uniform", dtype, shape, low, high, seed)
        least, most = INT_RANGE[dtype]
        given = self.profile.integers
        if given is not None:
            least, most = max(least, given[0]), min(most, given[1])
        if parameter.range is not None:
            low_, high_ = self._whole_bounds(parameter.range)
            least, most = max(INT_RANGE[dtype][0], low_), min(INT_RANGE[dtype][1], high_)
        if least > most:
            raise RetryError
        return Recipe("integers", dtype, shape, least, most, seed)

    def _dtype(self, parameter: Parameter) -> str:
        allowed = checker.allowed_dtypes(parameter, self._scope)
        return choose_item(self.rng, allowed) if allowed else self._any_dtype()

    def _any_dtype(self) -> str:
        weights = self.profile.dtypes
        place = self.rng.randrange(sum(weights.values()))
        return [name for name, weight in weights.items() for _ in range(weight)][place]

    def _shape(self, parameter: Parameter) -> tuple[int, ...]:
        if parameter.shape is None:
            least = self._bound(parameter.ndim.least) if parameter.ndim else 0
            most = self._bound(parameter.ndim.most) if parameter.ndim else None
            least = 0 if least is None else least
            rank = draw_int(
                self.rng, int(least), int(max(self.profile.max_rank, least) if most is None else most)
            )
            return tuple(self._length("") for _ in range(rank))
        pattern = parameter.shape.patterns[self._choice[len(parameter.shape.patterns)]]
        kind, inside = checker.parse_special_pattern(pattern)
        if kind:
            return self._alike(kind, inside)
        found: list[int] = []
        for token in pattern:
            found.extend(self._star(token, len(pattern)) if token.startswith("*") else (self._token(token),))
        return tuple(found)

    def _alike(self, kind: str, inside: str) -> tuple[int, ...]:
        if inside not in self._scope:
            for name in inside.split(","):
                self._token(name.strip())  # binds the symbols of a spelled shape
        elif not any(True for _ in list_tensors(self._scope[inside])):
            return tuple(self._length("") for _ in range(self.rng.randrange(self.profile.max_rank)))
        to = checker.target_shape(inside, self._scope) or ()
        if kind == "same" or self.rng.random() < 0.5:
            return to
        dropped = self.rng.randrange(len(to) + 1)
        return tuple(1 if self.rng.random() < 0.3 else length for length in to[dropped:])

    def _star(self, token: str, fixed: int) -> tuple[int, ...]:
        known = resolve_star(token, self._scope)
        if known is None:
            count = self.rng.randrange(max(1, min(3, self.profile.max_rank - fixed + 2)))
            known = tuple(self._length("") for _ in range(count))
            self._scope.symbols[token] = known
        return known

    def _token(self, token: str) -> int:
        for name in sorted(names_in(token)):
            if name not in self._scope:
                self._scope.symbols[name] = self._length(name)
        try:
            value = evaluate(token, self._scope)
        except (UnboundError, ExpressionError):
            raise RetryError from None
        if isinstance(value, (list, tuple, Recipe, Tensor)):
            value = self._scope.symbols.setdefault(f"len {token}", self._length(token))
        if type(value) is not int or value < 0:
            raise RetryError
        return value

    def _length(self, symbol: str) -> int:
        low, high = next(
            (lengths for pattern, lengths in self.profile.special if re.fullmatch(pattern, symbol)),
            self.profile.lengths,
        )
        divisor = self._divisor(symbol)
        return (
            divisor * draw_int(self.rng, max(1, low // divisor), max(1, high // divisor))
            if divisor > 1
            else draw_int(self.rng, low, high)
        )

    def _divisor(self, name: str) -> int:
        found = 1
        for text in find_multiples(self.record).get(name, ()):
            value = self._bound(text)
            if type(value) is int and value > 0:
                found = math.lcm(found, value)
        return found


_DRAWN = frozenset(
    {"tensor", "int", "float", "bool", "complex", "str", "dtype", "list(int)", "list(float)", "list(bool)"}
    | {"list(tensor)", "tuple(tensor)", "tuple(int)", "tuple(float)", "tuple(bool)"}
)
