"""Reduces operator instances: fewer parameters, plainer ones, shorter tensors, simpler numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fuzzing.cases import KerasLayer, Recipe, TestCase, TorchCall
from fuzzing.cases.arguments import Argument, Dtype, NewObject, TensorArg
from fuzzing.cases.plain_types import oddness
from fuzzing.errors import CaseFormatError
from fuzzing.reduce.case_inputs import Inputs, cast_inputs, shrink_inputs, simplify_inputs
from fuzzing.reduce.decomposition import decompose
from fuzzing.reduce.engine import Attempt, Pass, ReductionSpec, ddmin
from fuzzing.reduce.formats import ProgramFormat, register_format
from fuzzing.reduce.input_values import (
    as_tensor,
    complexity,
    number_complexity,
    plainer_replacements,
    simpler_numbers,
)

Call = TorchCall | KerasLayer
#: Place of an argument: a field of the program, then indices and names.
Path = tuple[Any, ...]


def size(case: TestCase) -> tuple[float, ...]:
    """Number of parameters, dimensions and input elements, then the complexity of parameters and values."""
    arguments = [argument for _, argument in _arguments(_program(case))]
    ranks = lengths = elements = 0
    broken = odd = 0
    for _, given in case.inputs:
        count, off, strange = complexity(given)
        tensor = as_tensor(given)
        if tensor is not None:
            ranks, lengths = ranks + len(tensor.shape), lengths + sum(tensor.shape)
        elements, broken, odd = elements + count, broken + off, odd + strange
    weight = sum(map(_weight, arguments))
    drawn = sum(not isinstance(given, Recipe) for _, given in case.inputs)
    return (
        len(_units(case)),
        len(case.inputs),
        ranks,
        elements,
        oddness(_dtypes(case)),
        lengths,
        weight,
        broken,
        odd,
        drawn,
    )


def _program(case: TestCase) -> Call:
    program = case.program
    assert isinstance(program, (TorchCall, KerasLayer))
    return program


# Parameters


def _argument_fields(program: Call) -> dict[str, Any]:
    """The fields that hold arguments."""
    if isinstance(program, KerasLayer):
        return {"kwargs": program.kwargs, "inputs": program.inputs, "call": program.call}
    parts: dict[str, Any] = {"args": program.args, "kwargs": program.kwargs}
    if program.init is not None:
        parts |= {"init.args": program.init.args, "init.kwargs": program.init.kwargs}
    return parts


def _with_field(program: Call, field: str, value: Any) -> Call:
    if field.startswith("init.") and isinstance(program, TorchCall) and program.init is not None:
        return replace(program, init=replace(program.init, **{field[5:]: value}))
    return replace(program, **{field: value})


def _arguments(program: Call) -> Iterator[tuple[Path, Argument]]:
    """Every argument with its place, nested ones included."""
    for field, value in _argument_fields(program).items():
        named = field.endswith("kwargs") or field == "call"
        for key, argument in value if named else enumerate(value):
            yield from _iter_nested((field, key), argument)


def _iter_nested(path: Path, argument: Argument) -> Iterator[tuple[Path, Argument]]:
    yield path, argument
    if isinstance(argument, (list, tuple)):
        for place, item in enumerate(argument):
            yield from _iter_nested((*path, place), item)


def _replace_argument(program: Call, path: Path, new: Argument) -> Call:
    field, key, *rest = path
    value = _argument_fields(program)[field]
    if isinstance(key, int):
        changed: Any = tuple(
            _replace_nested(item, rest, new) if n == key else item for n, item in enumerate(value)
        )
    else:
        changed = tuple(
            (name, _replace_nested(item, rest, new) if name == key else item) for name, item in value
        )
    return _with_field(program, field, changed)


def _replace_nested(argument: Argument, path: Sequence[int], new: Argument) -> Argument:
    if not path:
        return new
    items = [
        _replace_nested(item, path[1:], new) if n == path[0] else item for n, item in enumerate(argument)
    ]
    return type(argument)(items)


def _units(case: TestCase) -> list[tuple[str, Any]]:
    """What may be removed: each named parameter, and each positional one, the last first."""
    program = _program(case)
    named: list[tuple[str, Any]] = []
    for field, value in _argument_fields(program).items():
        if field.endswith("kwargs") or field == "call":
            named += [(field, name) for name, _ in value]
        else:
            named += [(field, place) for place in reversed(range(len(value)))]
    return named


def _without(case: TestCase, units: Sequence[tuple[str, Any]]) -> TestCase | None:
    """The call without some parameters; positional ones can only be removed from the end."""
    program = _program(case)
    for field, value in _argument_fields(program).items():
        gone = {key for name, key in units if name == field}
        if field.endswith("kwargs") or field == "call":
            kept: Any = tuple(item for item in value if item[0] not in gone)
        else:
            kept = tuple(item for place, item in enumerate(value) if place not in gone)
            if kept != value[: len(kept)]:
                return None
        try:
            program = _with_field(program, field, kept)
        except CaseFormatError:
            return None  # such as a Keras model without inputs
    return _with_program(case, program)


def _with_program(case: TestCase, program: Call) -> TestCase:
    """The case with another call: without inputs that became unused, and without a reference."""
    names = {tensor.name for tensor in program.tensors}
    inputs = tuple(item for item in case.inputs if item[0] in names)
    return replace(case, program=program, inputs=inputs, expected=None)


def _simpler_arguments(argument: Argument) -> Iterator[Argument]:
    """Simpler arguments for this place, simplest first."""
    if isinstance(argument, (bool, int, float)):
        yield from simpler_numbers(argument)
    elif isinstance(argument, TensorArg) and (argument.strides is not None or argument.layout != "strided"):
        yield replace(argument, strides=None, offset=0, layout="strided")
    elif isinstance(argument, (list, tuple)) and argument:
        yield argument[0]
        yield type(argument)(argument[:-1])
        yield type(argument)(argument[1:])


def _weight(argument: Argument) -> float:
    """Complexity of an argument."""
    if argument is None or isinstance(argument, (bool, int, float)):
        return number_complexity(argument)
    if isinstance(argument, (list, tuple)):
        return 2.0 + len(argument)
    if isinstance(argument, TensorArg):
        return 0.0 if argument.strides is None and argument.layout == "strided" else 4.0
    return 5.0 if isinstance(argument, NewObject) else 1.0


# Passes


def _drop_parameters(attempt: Attempt[TestCase]) -> None:
    """Omits parameters, for their defaults; many at once, then each, then each pair."""
    ddmin(attempt, _units, _without)
    if len(_units(attempt.best)) <= 12:  # 66 pairs
        while attempt.any(_pair_candidates(attempt.best)):
            pass


def _pair_candidates(case: TestCase) -> Iterator[TestCase]:
    units = _units(case)
    for place, one in enumerate(units):
        for other in units[place + 1 :]:
            candidate = _without(case, (one, other))
            if candidate is not None:
                yield candidate


def _simplify_arguments(attempt: Attempt[TestCase]) -> None:
    while attempt.any(_build_valid(_argument_candidates(attempt.best))):
        pass


def _argument_candidates(case: TestCase) -> Iterator[Callable[[], TestCase]]:
    program = _program(case)
    for path, argument in _arguments(program):
        for plainer in _simpler_arguments(argument):
            yield lambda path=path, plainer=plainer: _with_program(
                case, _replace_argument(program, path, plainer)
            )  # type: ignore[misc]


def _build_valid(makers: Iterator[Callable[[], TestCase]]) -> Iterator[TestCase]:
    """The programs that can be built: a program may reject its arguments."""
    for make in makers:
        with contextlib.suppress(CaseFormatError):
            yield make()


def _shrink(attempt: Attempt[TestCase]) -> None:
    """Shortens lengths; all tensors of one length together first, as they often have to agree."""
    while attempt.any(_build_valid(_shrink_candidates(attempt.best))):
        pass


def _shrink_candidates(case: TestCase) -> Iterator[Callable[[], TestCase]]:
    for inputs in shrink_inputs(case.inputs):
        yield lambda inputs=inputs: _with_inputs(case, inputs)  # type: ignore[misc]


def _with_inputs(case: TestCase, inputs: Inputs) -> TestCase:
    """The case with other inputs, and their types in the program's declarations."""
    given = dict(inputs)
    program = _program(case)
    for path, argument in list(_arguments(program)):
        if isinstance(argument, TensorArg):
            old, new = as_tensor(dict(case.inputs)[argument.name]), as_tensor(given[argument.name])
            if old is not None and new is not None and old.shape != new.shape:
                shape = None if argument.shape is None else new.shape
                program = _replace_argument(
                    program, path, replace(argument, shape=shape, strides=None, offset=0)
                )
    return replace(case, program=program, inputs=inputs, expected=None)


def _use_common_types(attempt: Attempt[TestCase]) -> None:
    """Common element types, or plainer ones, of inputs and of arguments that name one."""
    while attempt.any(
        _build_valid(
            _cast_all(attempt.best, replacements)
            for replacements in plainer_replacements(_dtypes(attempt.best))
        )
    ):
        pass


def _dtypes(case: TestCase) -> list[str]:
    """The element types of inputs and of arguments that name one."""
    named = [argument.name for _, argument in _arguments(_program(case)) if isinstance(argument, Dtype)]
    given = [tensor.dtype for _, value in case.inputs if (tensor := as_tensor(value)) is not None]
    return named + given


def _cast_all(case: TestCase, common: Mapping[str, str]) -> Callable[[], TestCase]:
    def made() -> TestCase:
        program = _program(case)
        for path, argument in list(_arguments(program)):
            if isinstance(argument, Dtype):
                program = _replace_argument(program, path, Dtype(common.get(argument.name, argument.name)))
            elif isinstance(argument, TensorArg) and argument.dtype is not None:
                dtype = common.get(argument.dtype, argument.dtype)
                program = _replace_argument(program, path, replace(argument, dtype=dtype))
        inputs = cast_inputs(case.inputs, common)
        return replace(case, program=program, inputs=inputs, expected=None)

    return made


def _simplify(attempt: Attempt[TestCase]) -> None:
    """Simplifies numbers that the bug does not depend on."""
    while attempt.any(_simplify_candidates(attempt.best)):
        pass


def _simplify_candidates(case: TestCase) -> Iterator[TestCase]:
    return (replace(case, inputs=inputs, expected=None) for inputs in simplify_inputs(case.inputs))


SPEC = ReductionSpec[TestCase](
    size=size,
    key=lambda case: case.id,
    passes=(
        Pass("drop", _drop_parameters),
        Pass("usual", _use_common_types),
        Pass("shrink", _shrink),
        Pass("plain", _simplify_arguments),
        Pass("simplify", _simplify),
    ),
)

_WORDS = ("parameters", "inputs", "dimensions", "elements")
_KERAS = ProgramFormat(
    KerasLayer.kind, load=lambda case, *_: case, case=lambda case: case, spec=SPEC, words=_WORDS
)
register_format(_KERAS)
register_format(replace(_KERAS, kind=TorchCall.kind, decompose=decompose))
