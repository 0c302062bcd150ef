"""Operator instances: an operator with one setting of its parameters, the unit of ranking.

A value is JSON as in `fuzzing.cases.arguments`, but a tensor is `{"tensor": [dtype, shape]}`, with `"layout"`
if that is not strided. As in OPERA, data and strides are not part of an instance.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fuzzing.cases import (
    EquivalentModels,
    EquivalentPair,
    KerasLayer,
    OnnxModel,
    Recipe,
    Sequence,
    Tensor,
    TestCase,
    TorchCall,
    TorchProgram,
    Value,
)
from fuzzing.cases.arguments import argument_to_json
from fuzzing.errors import UsageError
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.call_binding import JSON, BoundCall
from fuzzing.prioritize.instances_onnx import extract_onnx_instance

#: Prefix of an argument of a module's call if its class has a parameter of the same name.
CALL = "call."


@dataclass(frozen=True)
class Instance:
    """One operator with one setting of its parameters.

    id          of its case
    operator    torch's or Keras's dotted name, ONNX's op type
    parameters  name and value, complete, in the API's order; omitted ones have their defaults
    explicit    the names of those given
    frontend    onnx, torch or keras
    source      the case source it came from
    """

    id: str
    operator: str
    parameters: tuple[tuple[str, JSON], ...]
    frontend: str
    source: str = ""
    explicit: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The instance as one JSON object."""
        return {
            "id": self.id,
            "operator": self.operator,
            "parameters": [[name, value] for name, value in self.parameters],
            "explicit": list(self.explicit),
            "frontend": self.frontend,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, obj: Any) -> Instance:
        """The inverse of `to_json`; raises UsageError for anything else."""
        try:
            # One object for each name: a catalog of a million instances has few different ones.
            parameters = tuple((sys.intern(str(name)), value) for name, value in obj["parameters"])
            explicit = tuple(sys.intern(str(name)) for name in obj["explicit"])
            texts = [obj[key] for key in ("id", "operator", "frontend", "source")]
        except (TypeError, KeyError, ValueError) as error:
            raise UsageError(f"this is no operator instance: {error!r}") from None
        if not all(isinstance(text, str) for text in texts) or len(dict(parameters)) != len(parameters):
            raise UsageError(
                "an instance's id, operator, frontend and source are texts, its parameters differ"
            )
        case, *shared = texts
        operator, frontend, source = map(sys.intern, shared)
        return cls(case, operator, parameters, frontend, source, explicit)


def extract_instance(case: TestCase, signatures: ApiSignatures) -> Instance:
    """The operator instance of a case.

    The operator is the API of a TorchCall and the layer of a KerasLayer; of other programs the one in their
    provenance, else the type of an ONNX model's first node that is not a Constant.
    """
    operator, bound = _EXTRACTORS[case.program.kind](case, signatures)
    prov = case.provenance
    return Instance(case.id, operator, bound.parameters, case.program.frontend, prov.source, bound.explicit)


def _torch_call(case: TestCase, signatures: ApiSignatures) -> tuple[str, BoundCall]:
    program, tensors = case.program, _tensors(case)
    assert isinstance(program, TorchCall)
    args = [_argument_to_json(item, tensors) for item in program.args]
    kwargs = {name: _argument_to_json(item, tensors) for name, item in program.kwargs}
    if program.init is None:
        return program.api, signatures.call(program.api, args, kwargs)
    init_args = [_argument_to_json(item, tensors) for item in program.init.args]
    init_kwargs = {name: _argument_to_json(item, tensors) for name, item in program.init.kwargs}
    made = signatures.call(program.api, init_args, init_kwargs, "__init__")
    return program.api, join_calls(made, signatures.call(program.api, args, kwargs, "forward"))


def _keras_layer(case: TestCase, signatures: ApiSignatures) -> tuple[str, BoundCall]:
    program, tensors = case.program, _tensors(case)
    assert isinstance(program, KerasLayer)
    inputs = [_argument_to_json(item, tensors) for item in program.inputs]
    kwargs = {name: _argument_to_json(item, tensors) for name, item in program.kwargs}
    if not program.layer.rsplit(".", 1)[-1][:1].isupper():
        return program.layer, signatures.call(program.layer, inputs, kwargs)
    call = {name: _argument_to_json(item, tensors) for name, item in program.call}
    made = signatures.call(program.layer, [], kwargs, "__init__")
    return program.layer, join_calls(made, signatures.call(program.layer, inputs, call, "call"))


def _torch_program(case: TestCase, _: ApiSignatures) -> tuple[str, BoundCall]:
    tensors = tuple(_tensors(case).items())
    return case.provenance.operator, BoundCall(tensors, tuple(name for name, _ in tensors))


def _pair(case: TestCase, signatures: ApiSignatures) -> tuple[str, BoundCall]:
    """As of a program, with the rule as a parameter: pairs of one call by other rules are no repetition."""
    assert isinstance(case.program, EquivalentPair)
    operator, bound = _torch_program(case, signatures)
    return operator, BoundCall(
        (("equivalence rule", case.program.rule), *bound.parameters), ("equivalence rule", *bound.explicit)
    )


def _onnx_model(case: TestCase, _: ApiSignatures) -> tuple[str, BoundCall]:
    assert isinstance(case.program, OnnxModel)
    return extract_onnx_instance(case.program.model, _tensors(case), case.provenance.operator)


_EXTRACTORS: dict[str, Callable[[TestCase, ApiSignatures], tuple[str, BoundCall]]] = {
    TorchCall.kind: _torch_call,
    KerasLayer.kind: _keras_layer,
    TorchProgram.kind: _torch_program,
    OnnxModel.kind: _onnx_model,
    EquivalentPair.kind: _pair,
    EquivalentModels.kind: _torch_program,
}


def join_calls(made: BoundCall, called: BoundCall) -> BoundCall:
    """The parameters of an object's construction and of its call as those of one API."""
    taken = {name for name, _ in made.parameters}
    names = {name: CALL + name if name in taken else name for name, _ in called.parameters}
    parameters = tuple((names[name], value) for name, value in called.parameters)
    return BoundCall(
        made.parameters + parameters, made.explicit + tuple(names[name] for name in called.explicit)
    )


def _tensors(case: TestCase) -> dict[str, JSON]:
    return {name: value_to_json(value) for name, value in case.inputs}


def value_to_json(value: Value | Recipe) -> JSON:
    """An input as a parameter's value, without its data."""
    if isinstance(value, (Tensor, Recipe)):
        return {"tensor": [value.dtype, list(value.shape)]}
    if isinstance(value, Sequence):
        return [value_to_json(item) for item in value.items]
    return None  # an absent input


def _argument_to_json(argument: Any, tensors: Mapping[str, JSON]) -> JSON:
    return _insert_tensors(argument_to_json(argument), tensors)


def _insert_tensors(value: JSON, tensors: Mapping[str, JSON]) -> JSON:
    """`value` with every named tensor replaced by the case's input of that name."""
    if isinstance(value, list):
        return [_insert_tensors(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        given = tensors.get(value["tensor"]) or {
            "tensor": [value.get("dtype") or "", value.get("shape") or []]
        }
        return given | {"layout": value["layout"]} if "layout" in value else given
    return {key: _insert_tensors(item, tensors) for key, item in value.items()}


def read_instances(lines: Iterator[str]) -> Iterator[Instance]:
    """The instances in a catalog's lines: those under "instance", and lines that are instances."""
    for line in lines:
        try:
            obj = json.loads(line)
        except ValueError as error:
            raise UsageError(f"a line of the catalog is not JSON: {error}") from None
        if isinstance(obj, dict) and "id" in obj:
            yield _from_catalogue(obj)


def _from_catalogue(obj: dict[str, Any]) -> Instance:
    stored = obj.get("instance", obj if "parameters" in obj else None)
    if stored is None:  # a catalog from before instances were stored
        return Instance(str(obj["id"]), str(obj.get("operator", "")), (), "")
    return Instance.from_json(stored)
