"""A call with out= leaves there what the plain call returns."""

from __future__ import annotations

import re

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.generate.docter.apis import resolve


def _has_out(api: str) -> bool:
    """Whether the signature, a docstring's first paragraph, has it; the word alone is no sign."""
    return re.search(r"\bout=", (resolve(api).__doc__ or "").strip().partition("\n\n")[0]) is not None


#: torch.where has the argument in one of its two forms only, the others in their documentation only.
_LEFT_OUT = ("torch.where", "torch.std_mean", "torch.var_mean")


def _apis() -> tuple[str, ...]:
    return tuple(api for api in api_lists.functions() if api not in _LEFT_OUT and _has_out(api))


@register_rule("out-argument", equation="f(i) = out after f(i, out=out)", apis=_apis)
def rewrite(subject: Subject) -> Sides | None:
    """`out` is an empty tensor of the result's type, or several, which torch resizes."""
    if "out" in dict(subject.call.kwargs) or subject.case.comparison == "shapes":
        return None
    setup = [
        f"result = {subject.expression}",
        "many = isinstance(result, tuple)",
        "out = tuple(item.new_empty(0) for item in result) if many else result.new_empty(0)",
    ]
    written = f"{subject.expression[:-1]}{', ' if not subject.expression.endswith('(') else ''}out=out)"
    flat = "list({0}) if many else {0}"
    return Sides(
        subject.program(flat.format("result"), setup), subject.program(flat.format("out"), [*setup, written])
    )
