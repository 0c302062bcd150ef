"""The traits of operator instances: the API, and the parameters that are left."""

from __future__ import annotations

from collections.abc import Iterator

from fuzzing.cases import KerasLayer, Recipe, Tensor, TestCase, TorchCall
from fuzzing.prioritize.api_signatures import api_signatures
from fuzzing.prioritize.instances import extract_instance
from fuzzing.triage.traits import Traits, dtypes_of, register_traits, shape_needs


@register_traits(TorchCall.kind, KerasLayer.kind)
def traits(case: TestCase) -> Traits:
    """The traits of a case that is one call."""
    program = case.program
    assert isinstance(program, (TorchCall, KerasLayer))
    given = [given for _, given in case.inputs]
    shapes = [item.shape for item in given if isinstance(item, (Tensor, Recipe))]
    needs = {*_parameters(case, program), *shape_needs(shapes)}
    return Traits(_name(program), dtypes_of(given), tuple(sorted(needs)), (_name(program),))


def _name(program: TorchCall | KerasLayer) -> str:
    return program.layer if isinstance(program, KerasLayer) else program.api


def _parameters(case: TestCase, program: TorchCall | KerasLayer) -> Iterator[str]:
    """The names of parameters given by name, and of plain ones given by place.

    A place whose parameter is not known (the library is not installed, say) is `parameter 1`.
    """
    if isinstance(program, KerasLayer):
        by_name = {name for name, _ in (*program.kwargs, *program.call)}
    else:
        made = () if program.init is None else program.init.kwargs
        by_name = {name for name, _ in (*program.kwargs, *made)}
    instance = extract_instance(case, api_signatures())
    for name, value in instance.parameters:
        plain = not (isinstance(value, dict) and "tensor" in value)
        if name in instance.explicit and (plain or name in by_name):
            yield f"parameter {name}" if name.isdigit() else name
