"""A method of a tensor is the function of its name: torch documents it as "See torch.f"."""

from __future__ import annotations

from fuzzing.cases.argument_text import render_call
from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

_METHOD, _FUNCTION = "torch.Tensor.", "torch."
#: Methods that take their arguments in another order than the function, or as many as there are dimensions.
_OTHER_ARGUMENTS = tuple(_METHOD + name for name in ("polygamma", "where", "permute", "reshape"))


def _apis() -> tuple[str, ...]:
    known = set(api_lists.documented())
    methods = (api for api in api_lists.methods() if api not in _OTHER_ARGUMENTS)
    return tuple(api for api in methods if _function(api) in known)


def _function(api: str) -> str:
    return _FUNCTION + api.removeprefix(_METHOD)


@register_rule("function-form", equation="i.f() = torch.f(i)", apis=_apis)
def rewrite(subject: Subject) -> Sides | None:
    """The tensor as the function's first argument."""
    call = subject.call
    if not call.args or subject.api in _OTHER_ARGUMENTS:
        return None
    function = f"{_function(subject.api)}({render_call(call.args, call.kwargs)})"
    return Sides(subject.program(), subject.program(function))
