"""`draw(record, rng)`: a call whose arguments satisfy, nearly break or break an API's constraints.

DocTer's generator: parameters in topological order over their dependencies, an optional one with
probability 0.6, an enumeration's member if there is one, else a structure, a type, a shape and values.
Only `random`, `randrange` and `getrandbits` of `random.Random` are used; tensors are seeded recipes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import Any

from fuzzing.errors import UsageError
from fuzzing.generate.docter import boundary_mutation, violation
from fuzzing.generate.docter.calls import Call
from fuzzing.generate.docter.checker import find_violations
from fuzzing.generate.docter.parameter_order import order_parameters
from fuzzing.generate.docter.record import Record
from fuzzing.generate.docter.value_generator import CallAttempt, RetryError
from fuzzing.generate.docter.value_profiles import TAME, Profile

#: How often an optional parameter is given (fuzz_optional_p).
OPTIONAL_P = 0.6
#: How often a boundary mutation befalls one parameter of a conforming call in mode MIXED (mutate_p).
MUTATE_P = 0.2
_MAX_MINIMAL_ATTEMPTS = 40
_MAX_ATTEMPTS = 400  # draws may contradict a relation (a kernel larger than its input); most need one or two


class Mode(StrEnum):
    """How a draw treats the constraints.

    MINIMAL     satisfies them, with required parameters only: the first call of every API
    CONFORMING  satisfies them
    BOUNDARY    satisfies them but for one parameter, which is emptied, zeroed or set to an extreme
    MIXED       BOUNDARY with probability 0.2, else CONFORMING: DocTer's conforming inputs
    VIOLATING   breaks constraints of exactly one parameter
    """

    MINIMAL = "minimal"
    CONFORMING = "conforming"
    BOUNDARY = "boundary"
    MIXED = "mixed"
    VIOLATING = "violating"


class NoDrawError(UsageError):
    """No call satisfies the record (or breaks it as requested): it contradicts itself."""


def draw(record: Record, rng: Random, mode: Mode = Mode.CONFORMING, profile: Profile = TAME) -> Call:
    """A call of the record's API, a function of the state of `rng`. Raises NoDrawError."""
    if mode is Mode.MIXED:
        mode = Mode.BOUNDARY if rng.random() < MUTATE_P else Mode.CONFORMING
    conforming = _draw_conforming(record, rng, profile, OPTIONAL_P if mode is not Mode.MINIMAL else 0.0)
    if mode is Mode.BOUNDARY:
        return boundary_mutation.mutate(conforming, rng)
    if mode is not Mode.VIOLATING:
        return conforming
    for _ in range(_MAX_ATTEMPTS):
        if (broken := violation.break_one_parameter(conforming, rng)) is not None:
            return broken
        conforming = _draw_conforming(record, rng, profile, OPTIONAL_P)
    raise NoDrawError(
        f"nothing of {record.api} can be broken alone; it has no constraint that stands by itself"
    )


def _draw_conforming(record: Record, rng: Random, profile: Profile, optional: float) -> Call:
    for turn in range(_MAX_ATTEMPTS):
        if turn == _MAX_MINIMAL_ATTEMPTS:
            optional = OPTIONAL_P  # some calls need one of two optional parameters
        try:
            call = Call(record, _draw_arguments(record, rng, profile, optional))
        except RetryError:
            continue
        if not find_violations(call):
            return call
    raise NoDrawError(
        f"no call of {record.api} obeys its record in {_MAX_ATTEMPTS} tries; correct it in overrides.yaml "
        f"(python -m fuzzing.generate.docter show {record.api})"
    )


def _draw_arguments(record: Record, rng: Random, profile: Profile, optional: float) -> Mapping[str, Any]:
    attempt = CallAttempt(record, rng, profile)
    for parameter in order_parameters(record):
        if parameter.required or (rng.random() < optional and attempt.can_draw(parameter)):
            attempt.draw(parameter)
    drawn = attempt.arguments
    return {item.name: drawn[item.name] for item in record.parameters if item.name in drawn}
