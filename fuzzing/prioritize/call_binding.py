"""Binds the arguments of a call to the parameters of its API.

Values are JSON as in `fuzzing.cases.arguments`, except that a tensor is `{"tensor": [dtype, shape]}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzing.cases.arguments import argument_to_json
from fuzzing.errors import CaseFormatError

JSON = Any

#: Prefix of the outputs of an ONNX node, which count as parameters in OPERA's released code.
OUTPUT = "output."


@dataclass(frozen=True)
class Parameter:
    """One parameter of an API.

    default  its value if a call omits it; meaningless if it is `required`
    accepts  whether it can take a value; this distinguishes overloads
    """

    name: str
    required: bool = True
    default: JSON = None
    keyword_only: bool = False
    accepts: Callable[[JSON], bool] = lambda _: True


@dataclass(frozen=True)
class ApiSignature:
    """The parameters of an API, in its order.

    rest      the parameter that takes all further positional arguments as a list; "" if none does
    spread    whether `rest` also takes the list itself, as in `x.view(2, 3)` and `x.view([2, 3])`
    keywords  whether it takes keywords of any name
    """

    parameters: tuple[Parameter, ...]
    rest: str = ""
    spread: bool = False
    keywords: bool = False

    @property
    def is_catch_all(self) -> bool:
        """Whether it is only `*args, **kwargs`."""
        return all(one.name in (self.rest, "self") for one in self.parameters)


@dataclass(frozen=True)
class BoundCall:
    """A call's complete parameters in the API's order, and the names of the explicit ones."""

    parameters: tuple[tuple[str, JSON], ...]
    explicit: tuple[str, ...]


def bind_call(signature: ApiSignature, args: Sequence[JSON], kwargs: Mapping[str, JSON]) -> BoundCall | None:
    """The call's parameters under `signature`; None if it does not fit."""
    positional = [one for one in signature.parameters if not one.keyword_only]
    given: dict[str, JSON] = {}
    left = list(args)
    for parameter in positional[: len(args)]:
        if parameter.name == signature.rest:
            alone = signature.spread and len(left) == 1
            given[parameter.name] = left[0] if alone else left
            left = []
            break
        given[parameter.name] = left.pop(0)
    known = {parameter.name for parameter in signature.parameters}
    for name, value in kwargs.items():
        plain = "input" if name == "self" and "input" in known else name
        if plain in given or (plain not in known and not signature.keywords):
            return None
        given[plain] = value
    if left or any(one.required and one.name not in given for one in signature.parameters):
        return None
    if not all(one.accepts(given[one.name]) for one in signature.parameters if one.name in given):
        return None
    complete = {one.name: given.get(one.name, one.default) for one in signature.parameters}
    return BoundCall(
        tuple((complete | given).items()), tuple(name for name in complete | given if name in given)
    )


def bind_by_position(args: Sequence[JSON], kwargs: Mapping[str, JSON]) -> BoundCall:
    """A call of an API without a known signature: positional arguments are named by their index."""
    given = {str(place): value for place, value in enumerate(args)} | dict(kwargs)
    return BoundCall(tuple(given.items()), tuple(given))


def default_to_json(value: Any) -> JSON:
    """A default as JSON: values without a form as an argument are their name, or their type's."""
    try:
        return argument_to_json(value)
    except CaseFormatError:
        pass
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "layout", "memory_format"):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    named = value if hasattr(value, "__qualname__") else type(value)
    return {"name": f"{named.__module__}.{named.__qualname__}"}
