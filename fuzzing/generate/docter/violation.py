"""Violating calls: exactly one parameter breaks its constraints.

DocTer's: a type outside the list (another width of integer does not count), another rank, a value beyond a
bound, a text one edit away from a legal one, a number beside an enumeration. Shapes and lengths, which DocTer
leaves alone, are changed by one length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from fuzzing.cases import Recipe, Tensor
from fuzzing.generate.docter.calls import Call
from fuzzing.generate.docter.checker import allowed_dtypes, bind_symbols, evaluate_bound, find_violations
from fuzzing.generate.docter.record import Parameter
from fuzzing.generate.docter.symbol_bindings import Scope
from fuzzing.generate.docter.value_profiles import FLOAT_MAX, INT_RANGE, POOL

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8"})

Breaker = Callable[[Parameter, Any, Scope, Random], Any]


def break_one_parameter(call: Call, rng: Random) -> Call | None:
    """The call with one parameter broken, confirmed by the checker; None if none can be."""
    scope, _ = bind_symbols(call)
    violations = list(_candidate_violations(call, scope))
    while violations:
        parameter, breaker = violations.pop(rng.randrange(len(violations)))
        broken = breaker(parameter, call.arguments[parameter.name], scope, rng)
        if broken is _NO_VIOLATION:
            continue
        changed = Call(call.record, {**call.arguments, parameter.name: broken})
        if {item.parameter for item in find_violations(changed)} == {parameter.name}:
            return changed
    return None


_NO_VIOLATION = object()


def _candidate_violations(call: Call, scope: Scope) -> Iterator[tuple[Parameter, Breaker]]:
    for parameter in call.record.parameters:
        if parameter.name not in call.arguments:
            continue
        value = call.arguments[parameter.name]
        if isinstance(value, (Recipe, Tensor)):
            if allowed_dtypes(parameter, scope):
                yield parameter, _dtype
            if parameter.ndim or parameter.shape:
                yield parameter, _rank
                yield parameter, _lengths
        if parameter.range:
            yield parameter, _range
        if parameter.enum:
            yield parameter, _enum
        if parameter.length and isinstance(value, (list, tuple)):
            yield parameter, _length
        if parameter.options:
            yield parameter, _structure


def _dtype(parameter: Parameter, value: Any, scope: Scope, rng: Random) -> Any:
    allowed = set(allowed_dtypes(parameter, scope))
    if allowed & _INTEGERS:
        allowed |= _INTEGERS
    others = [name for name in POOL if name not in allowed]
    if not others:
        return _NO_VIOLATION
    dtype = others[rng.randrange(len(others))]
    return Recipe("constant", dtype, value.shape, 1, 0, 0)


def _rank(_: Parameter, value: Any, __: Scope, rng: Random) -> Any:
    shape = value.shape[1:] if value.shape and rng.random() < 0.5 else (2, *value.shape)
    return _reshaped(value, shape, rng)


def _lengths(_: Parameter, value: Any, __: Scope, rng: Random) -> Any:
    if not value.shape:
        return _NO_VIOLATION
    place = rng.randrange(len(value.shape))
    return _reshaped(value, tuple(length + (at == place) for at, length in enumerate(value.shape)), rng)


def _reshaped(value: Recipe | Tensor, shape: tuple[int, ...], rng: Random) -> Recipe:
    if isinstance(value, Recipe):
        return Recipe(value.kind, value.dtype, shape, value.low, value.high, rng.getrandbits(64))
    return Recipe("constant", value.dtype, shape, 1, 0, 0)


def _range(parameter: Parameter, value: Any, scope: Scope, rng: Random) -> Any:
    if parameter.range is None or isinstance(value, (bool, str)):
        return _NO_VIOLATION
    low, high = evaluate_bound(parameter.range.low, scope), evaluate_bound(parameter.range.high, scope)
    outside = [low - 1 - rng.randrange(8) for _ in range(low is not None)]
    outside += [high + 1 + rng.randrange(8) for _ in range(high is not None)]
    if not outside:
        return _NO_VIOLATION
    number = outside[rng.randrange(len(outside))]
    if isinstance(value, (Recipe, Tensor)):
        least, most = INT_RANGE.get(value.dtype, (-FLOAT_MAX["float16"], FLOAT_MAX["float16"]))
        if not least <= number <= most:
            return _NO_VIOLATION
        return Recipe("constant", value.dtype, value.shape, number, 0, 0)
    if isinstance(value, (list, tuple)):
        return [number, *value[1:]] if value else _NO_VIOLATION
    return float(number) if isinstance(value, float) else int(number)


def _enum(parameter: Parameter, value: Any, _: Scope, rng: Random) -> Any:
    legal = parameter.enum.values if parameter.enum else ()
    if isinstance(value, str) and value:
        place, letter = rng.randrange(len(value)), _LETTERS[rng.randrange(26)]
        edits = (value[:place] + value[place + 1 :], value[:place] + letter + value[place:])
        return edits[rng.randrange(2)]
    numbers = [item for item in legal if type(item) in (int, float)]
    if not numbers:
        return _NO_VIOLATION
    ordered = sorted(item for item in numbers if isinstance(item, (int, float)))
    return ordered[0] - 1 if rng.random() < 0.5 else ordered[-1] + 1


def _length(_: Parameter, value: Any, __: Scope, rng: Random) -> Any:
    if value and rng.random() < 0.5:
        return type(value)(value[:-1])
    return type(value)([*value, value[0] if value else 1])


def _structure(parameter: Parameter, _: Any, __: Scope, rng: Random) -> Any:
    others = [item for item in ("text", [1, 2], 0.5, 3) if not _may_be(item, parameter)]
    return others[rng.randrange(len(others))] if others else _NO_VIOLATION


def _may_be(value: object, parameter: Parameter) -> bool:
    kinds = {
        str: ("str",),
        list: ("list(int)", "list(float)", "tuple(int)", "tuple(float)"),
        float: ("float", "complex"),
    }
    return any(option in kinds.get(type(value), ("int", "float", "complex")) for option in parameter.options)
