"""The traits of operator instances: the API, and the parameters that are left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzzing.cases import KerasLayer, Recipe, Tensor, TestCase, TorchCall
from fuzzing.cases.arguments import TensorArg
from fuzzing.triage.traits import Traits, dtypes_of, register_traits, shape_needs


@register_traits(TorchCall.kind, KerasLayer.kind)
def traits(case: TestCase) -> Traits:
    """The traits of a case that is one call."""
    program = case.program
    assert isinstance(program, (TorchCall, KerasLayer))
    given = [given for _, given in case.inputs]
    shapes = [item.shape for item in given if isinstance(item, (Tensor, Recipe))]
    needs = {*_parameters(program), *shape_needs(shapes)}
    return Traits(_name(program), dtypes_of(given), tuple(sorted(needs)), (_name(program),))


def _name(program: TorchCall | KerasLayer) -> str:
    return program.layer if isinstance(program, KerasLayer) else program.api


def _parameters(program: TorchCall | KerasLayer) -> Iterator[str]:
    """The names of parameters given by name, and the places of plain ones given by place."""
    if isinstance(program, KerasLayer):
        yield from (name for name, _ in (*program.kwargs, *program.call))
        return
    yield from _given("", program.args, program.kwargs)
    if program.init is not None:
        yield from _given("init ", program.init.args, program.init.kwargs)


def _given(where: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> Iterator[str]:
    yield from (f"{where}parameter {n}" for n, item in enumerate(args) if not isinstance(item, TensorArg))
    yield from (f"{where}{name}" for name, _ in kwargs)
