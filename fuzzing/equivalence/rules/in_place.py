"""A call that overwrites its input leaves there what the plain call returns."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject


def _apis() -> tuple[str, ...]:
    known = set(api_lists.documented()) - {"torch.Tensor.float_power_"}  # of float64 only
    return tuple(api for api in api_lists.methods() if not api.endswith("_") and f"{api}_" in known)


@register_rule("in-place", equation="f(i) = i after f_(i)", apis=_apis)
def rewrite(subject: Subject) -> Sides | None:
    """f_ on a copy; the result must have the input's type and shape, as torch requires of it."""
    method = subject.api.rsplit(".", 1)[-1]
    # With dtype the input cannot hold the result.
    if "dtype" in dict(subject.call.kwargs):
        return None
    if f".{method}(" not in subject.expression or subject.case.comparison == "shapes":
        return None
    first = subject.names[0]
    written = subject.expression.replace(f".{method}(", f".{method}_(", 1)
    setup = [f"result = {subject.expression}"]
    # Both sides skip what cannot be written in place: another shape, or a type that does not fit.
    guard = (
        f"if result.shape != {first}.shape or not torch.can_cast(result.dtype, {first}.dtype):\n"
        f"    return {first}"
    )
    left = subject.program(f"result.to({first}.dtype)", [*setup, guard])
    right = subject.program(first, [*setup, guard, f"{first} = {first}.clone()", written])
    return Sides(left, right)
