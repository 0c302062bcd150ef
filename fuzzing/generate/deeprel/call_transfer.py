"""Converts a recorded call of one API to another, both normalized so that equal calls are one case."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fuzzing.cases import Argument, Init, Input, NewObject, Provenance, TensorArg, TestCase, TorchCall
from fuzzing.errors import CaseFormatError
from fuzzing.generate.deeprel import parameter_mapping as mappings
from fuzzing.generate.deeprel.api_inventory import Api
from fuzzing.generate.deeprel.parameter_mapping import ParameterMapping as ParameterMapping
from fuzzing.generate.deeprel.signatures import Signature

#: The name by which cases of this source are known.
SOURCE = "deeprel"


@dataclass(frozen=True)
class Invocation:
    """A call of `api`: the arguments by parameter of one of its signatures.

    bound           arguments by parameter; of a class, its constructor's
    inputs          the tensors, by the names of their arguments
    origin          the recorded case it comes from
    call_arguments  of a class, the arguments of the module's call; None for any other API
    """

    api: Api
    signature: Signature
    bound: Mapping[str, Argument]
    inputs: Mapping[str, Input]
    origin: TestCase
    call_arguments: tuple[tuple[Argument, ...], tuple[tuple[str, Argument], ...]] | None = None

    def case(self, test: str, seed: int | None = None) -> TestCase:
        """The call as a normalized case. Raises CaseFormatError for values a case cannot hold."""
        renamed = _TensorRenamer(self.inputs)
        # Inputs are named by parameter; a method's tensor cannot be: self names the module in the text.
        bound = {name: renamed.argument(value, name) for name, value in self.bound.items()}
        args, kwargs = self.signature.unbind(bound)
        if self.call_arguments is None:
            program = TorchCall(self.api.name, args, kwargs)
        else:
            inside = tuple(renamed.argument(value, "input") for value in self.call_arguments[0])
            named = tuple((name, renamed.argument(value, name)) for name, value in self.call_arguments[1])
            program = TorchCall(self.api.name, inside, named, Init(args, kwargs))
        origin = self.origin.provenance
        provenance = Provenance(
            SOURCE, test, self.api.name.removeprefix("torch."), origin.library, origin.version, seed
        )
        return TestCase(program, tuple(renamed.inputs.items()), provenance)


class _TensorRenamer:
    def __init__(self, given: Mapping[str, Input]) -> None:
        self._given = given
        self._names: dict[str, str] = {}
        self.inputs: dict[str, Input] = {}

    def argument(self, value: Argument, name: str) -> Argument:
        """The argument with its tensors renamed after `name`."""
        if isinstance(value, TensorArg):
            return replace(value, name=self._name(value.name, name))
        if isinstance(value, (list, tuple)):
            return type(value)(self.argument(item, name) for item in value)
        if isinstance(value, dict):
            return {key: self.argument(item, name) for key, item in value.items()}
        if isinstance(value, NewObject):
            named = tuple((key, self.argument(item, key)) for key, item in value.kwargs)
            return NewObject(value.api, tuple(self.argument(item, name) for item in value.args), named)
        if isinstance(value, slice):
            return slice(*(self.argument(part, name) for part in (value.start, value.stop, value.step)))
        return value

    def _name(self, old: str, wanted: str) -> str:
        if old not in self._names:
            wanted = "input" if wanted == "self" else wanted
            if keyword.iskeyword(wanted) or wanted in ("torch", "np", "hashlib", "keras"):
                wanted += "_"
            free = (wanted, *(f"{wanted}{count}" for count in range(1, len(self.inputs) + 1)))
            self._names[old] = next(name for name in free if name not in self.inputs)
            self.inputs[self._names[old]] = self._given[old]
        return self._names[old]


def bind_case(api: Api, case: TestCase) -> Invocation | None:
    """A case's call, bound to the first signature of `api` that it fits; None if it fits none."""
    call = case.program
    if not isinstance(call, TorchCall) or (call.init is not None) != (api.kind == "class"):
        return None
    args, kwargs = (call.args, call.kwargs) if call.init is None else (call.init.args, call.init.kwargs)
    call_arguments = None if call.init is None else (call.args, call.kwargs)
    for signature in api.signatures:
        bound = signature.bind(args, dict(kwargs))
        if bound is not None:
            return Invocation(api, signature, bound, dict(case.inputs), case, call_arguments)
    return None


@dataclass(frozen=True)
class Transfer:
    """One call of the source API, and the equivalent call of the target.

    dropped  the source's arguments without a parameter in the target; neither call has them
    """

    source: Invocation
    target: Invocation
    dropped: tuple[str, ...] = ()

    def cases(self, seed: int | None = None) -> tuple[TestCase, TestCase] | None:
        """Both calls as cases; None if a case cannot hold one of them."""
        test = self.source.origin.provenance.test
        there, here = self.target.api.name, self.source.api.name
        try:
            return self.source.case(test, seed), self.target.case(f"{there} <- {here} {test}", seed)
        except CaseFormatError:
            return None


def transfer(call: Invocation, target: Api) -> Transfer | None:
    """The call as one of `target`: by the signature that takes most arguments, the most similar first."""
    best = max(_transfers(call, target), key=lambda way: (len(way[1]), way[0].similarity), default=None)
    if best is None:
        return None
    chosen, moved = best
    kept = {here: call.bound[here] for here, _ in chosen.pairs if here in call.bound}
    dropped = tuple(name for name in call.bound if name not in kept)
    ordered = {p.name: kept[p.name] for p in call.signature.parameters if p.name in kept}
    return Transfer(
        replace(call, bound=ordered),
        replace(call, api=target, signature=chosen.target, bound=moved),
        dropped,
    )


def _transfers(call: Invocation, target: Api) -> Iterator[tuple[ParameterMapping, dict[str, Any]]]:
    positions = "method" not in (call.api.kind, target.kind)
    for signature in target.signatures:
        found = mappings.map_parameters(call.signature, signature, positions=positions)
        if found is None:
            continue
        moved = {there: call.bound[here] for here, there in found.pairs if here in call.bound}
        fits = all(
            parameter.accepts(moved[parameter.name]) if parameter.name in moved else parameter.optional
            for parameter in signature.parameters
        )
        if fits:
            yield found, moved
