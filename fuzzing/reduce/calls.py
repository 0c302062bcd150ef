"""Operator instances made small: fewer parameters, plainer ones, shorter tensors, simpler numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fuzzing.cases import KerasLayer, Recipe, TestCase, TorchCall
from fuzzing.cases.arguments import Argument, Dtype, New, TensorArg
from fuzzing.errors import CaseFormatError
from fuzzing.reduce.engine import Attempt, Format, Pass, cut
from fuzzing.reduce.inputs import (
    COMMON,
    complexity,
    is_unusual,
    number_weight,
    plainer_number,
    tensor_of,
)
from fuzzing.reduce.lengths import Inputs, recast_inputs, simpler_inputs, smaller_inputs
from fuzzing.reduce.lenses import Lens, register_lens

Call = TorchCall | KerasLayer
#: Where an argument stands: a field of the program, then indices and names.
Path = tuple[Any, ...]


def size(case: TestCase) -> tuple[float, ...]:
    """Parameters, dimensions and elements of the inputs, then how plain parameters and values are."""
    arguments = [argument for _, argument in _arguments(_program(case))]
    ranks = lengths = elements = 0
    broken = odd = 0
    for _, given in case.inputs:
        count, off, strange = complexity(given)
        tensor = tensor_of(given)
        if tensor is not None:
            ranks, lengths = ranks + len(tensor.shape), lengths + sum(tensor.shape)
        elements, broken, odd = elements + count, broken + off, odd + strange
    weight = sum(map(_weight, arguments))
    drawn = sum(not isinstance(given, Recipe) for _, given in case.inputs)
    types = [argument.name for argument in arguments if isinstance(argument, Dtype)]
    types += [tensor.dtype for _, given in case.inputs if (tensor := tensor_of(given)) is not None]
    unusual = sum(map(is_unusual, types))
    return (
        len(_units(case)),
        len(case.inputs),
        ranks,
        elements,
        unusual,
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


# -- parameters --------------------------------------------------------------------------------------


def _parts(program: Call) -> dict[str, Any]:
    """The fields that hold arguments."""
    if isinstance(program, KerasLayer):
        return {"kwargs": program.kwargs, "inputs": program.inputs, "call": program.call}
    parts: dict[str, Any] = {"args": program.args, "kwargs": program.kwargs}
    if program.init is not None:
        parts |= {"init.args": program.init.args, "init.kwargs": program.init.kwargs}
    return parts


def _with(program: Call, field: str, value: Any) -> Call:
    if field.startswith("init.") and isinstance(program, TorchCall) and program.init is not None:
        return replace(program, init=replace(program.init, **{field[5:]: value}))
    return replace(program, **{field: value})


def _arguments(program: Call) -> Iterator[tuple[Path, Argument]]:
    """Every argument, those inside lists and the like included, with its place."""
    for field, value in _parts(program).items():
        named = field.endswith("kwargs") or field == "call"
        for key, argument in value if named else enumerate(value):
            yield from _inside((field, key), argument)


def _inside(path: Path, argument: Argument) -> Iterator[tuple[Path, Argument]]:
    yield path, argument
    if isinstance(argument, (list, tuple)):
        for place, item in enumerate(argument):
            yield from _inside((*path, place), item)


def _put(program: Call, path: Path, new: Argument) -> Call:
    field, key, *rest = path
    value = _parts(program)[field]
    if isinstance(key, int):
        changed: Any = tuple(_inner(item, rest, new) if n == key else item for n, item in enumerate(value))
    else:
        changed = tuple((name, _inner(item, rest, new) if name == key else item) for name, item in value)
    return _with(program, field, changed)


def _inner(argument: Argument, path: Sequence[int], new: Argument) -> Argument:
    if not path:
        return new
    items = [_inner(item, path[1:], new) if n == path[0] else item for n, item in enumerate(argument)]
    return type(argument)(items)


def _units(case: TestCase) -> list[tuple[str, Any]]:
    """What may be left out: each named parameter, and each positional one, the last first."""
    program = _program(case)
    named: list[tuple[str, Any]] = []
    for field, value in _parts(program).items():
        if field.endswith("kwargs") or field == "call":
            named += [(field, name) for name, _ in value]
        else:
            named += [(field, place) for place in reversed(range(len(value)))]
    return named


def _without(case: TestCase, units: Sequence[tuple[str, Any]]) -> TestCase | None:
    """The call without some parameters; positional ones can only go from the end, named ones anywhere."""
    program = _program(case)
    for field, value in _parts(program).items():
        gone = {key for name, key in units if name == field}
        if field.endswith("kwargs") or field == "call":
            kept: Any = tuple(item for item in value if item[0] not in gone)
        else:
            kept = tuple(item for place, item in enumerate(value) if place not in gone)
            if kept != value[: len(kept)]:
                return None
        try:
            program = _with(program, field, kept)
        except CaseFormatError:
            return None  # such as a Keras model without inputs
    return _rebuilt(case, program)


def _rebuilt(case: TestCase, program: Call) -> TestCase:
    """The case with another call: inputs that nothing takes any more are gone, its reference is not known."""
    names = {tensor.name for tensor in program.tensors}
    inputs = tuple(item for item in case.inputs if item[0] in names)
    return replace(case, program=program, inputs=inputs, expected=None)


def _plainer(argument: Argument) -> Iterator[Argument]:
    """Arguments in its place that are easier to read, the easiest first."""
    if isinstance(argument, (bool, int, float)):
        yield from plainer_number(argument)
    elif isinstance(argument, TensorArg) and (argument.strides is not None or argument.layout != "strided"):
        yield replace(argument, strides=None, offset=0, layout="strided")
    elif isinstance(argument, (list, tuple)) and argument:
        yield argument[0]
        yield type(argument)(argument[:-1])
        yield type(argument)(argument[1:])


def _weight(argument: Argument) -> float:
    """How hard an argument is to read."""
    if argument is None or isinstance(argument, (bool, int, float)):
        return number_weight(argument)
    if isinstance(argument, (list, tuple)):
        return 2.0 + len(argument)
    if isinstance(argument, TensorArg):
        return 0.0 if argument.strides is None and argument.layout == "strided" else 4.0
    return 5.0 if isinstance(argument, New) else 1.0


# -- passes --------------------------------------------------------------------------------------------


def _drop(attempt: Attempt[TestCase]) -> None:
    """Parameters left out, so that their defaults hold; many at once, then each, then each pair."""
    cut(attempt, _units, _without)
    if len(_units(attempt.best)) <= 12:  # 66 pairs
        while attempt.any(_pairs(attempt.best)):
            pass


def _pairs(case: TestCase) -> Iterator[TestCase]:
    units = _units(case)
    for place, one in enumerate(units):
        for other in units[place + 1 :]:
            candidate = _without(case, (one, other))
            if candidate is not None:
                yield candidate


def _plain(attempt: Attempt[TestCase]) -> None:
    while attempt.any(_valid(_made_plainer(attempt.best))):
        pass


def _made_plainer(case: TestCase) -> Iterator[Callable[[], TestCase]]:
    program = _program(case)
    for path, argument in _arguments(program):
        for plainer in _plainer(argument):
            yield lambda path=path, plainer=plainer: _rebuilt(case, _put(program, path, plainer))  # type: ignore[misc]


def _valid(makers: Iterator[Callable[[], TestCase]]) -> Iterator[TestCase]:
    """What can be made at all: a program may refuse what it is given."""
    for make in makers:
        with contextlib.suppress(CaseFormatError):
            yield make()


def _shrink(attempt: Attempt[TestCase]) -> None:
    """Lengths, all tensors of one length together first: they often have to agree."""
    while attempt.any(_valid(_shrunk(attempt.best))):
        pass


def _shrunk(case: TestCase) -> Iterator[Callable[[], TestCase]]:
    for inputs in smaller_inputs(case.inputs):
        yield lambda inputs=inputs: _reshaped(case, inputs)  # type: ignore[misc]


def _reshaped(case: TestCase, inputs: Inputs) -> TestCase:
    """The case with other inputs, which the program is told of where it declares them."""
    given = dict(inputs)
    program = _program(case)
    for path, argument in list(_arguments(program)):
        if isinstance(argument, TensorArg):
            old, new = tensor_of(dict(case.inputs)[argument.name]), tensor_of(given[argument.name])
            if old is not None and new is not None and old.shape != new.shape:
                shape = None if argument.shape is None else new.shape
                program = _put(program, path, replace(argument, shape=shape, strides=None, offset=0))
    return replace(case, program=program, inputs=inputs, expected=None)


def _usual(attempt: Attempt[TestCase]) -> None:
    """Common element types, of inputs and of arguments that name one."""
    while attempt.any(_valid(_recast(attempt.best, common) for common in COMMON)):
        pass


def _recast(case: TestCase, common: Mapping[str, str]) -> Callable[[], TestCase]:
    def made() -> TestCase:
        program = _program(case)
        for path, argument in list(_arguments(program)):
            if isinstance(argument, Dtype):
                program = _put(program, path, Dtype(common.get(argument.name, argument.name)))
            elif isinstance(argument, TensorArg) and argument.dtype is not None:
                dtype = common.get(argument.dtype, argument.dtype)
                program = _put(program, path, replace(argument, dtype=dtype))
        inputs = recast_inputs(case.inputs, common)
        return replace(case, program=program, inputs=inputs, expected=None)

    return made


def _simplify(attempt: Attempt[TestCase]) -> None:
    """Numbers that people can read, where the bug does not need others."""
    while attempt.any(_simplified(attempt.best)):
        pass


def _simplified(case: TestCase) -> Iterator[TestCase]:
    return (replace(case, inputs=inputs, expected=None) for inputs in simpler_inputs(case.inputs))


FORMAT = Format[TestCase](
    size=size,
    key=lambda case: case.id,
    passes=(
        Pass("drop", _drop),
        Pass("usual", _usual),
        Pass("shrink", _shrink),
        Pass("plain", _plain),
        Pass("simplify", _simplify),
    ),
)

_WORDS = ("parameters", "inputs", "dimensions", "elements")
for _kind in ("TorchCall", "KerasLayer"):
    register_lens(
        Lens(_kind, load=lambda case, *_: case, case=lambda case: case, format=FORMAT, words=_WORDS)
    )
