"""A call in float16 or float32 is, but for rounding, that in the next wider type."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

#: What shows a type, or takes a step of it; and singular vectors, whose signs are free.
_SHOWN = (
    "type",
    "nextafter",
    "frexp",
    "eps",
    "finfo",
    "element_size",
    "nbytes",
    "itemsize",
    "view",
    "spacing",
    "svd",
)


def _apis() -> tuple[str, ...]:
    return tuple(api for api in api_lists.functions() if not any(word in api for word in _SHOWN))


@register_rule("up-cast", equation="f(i) = narrow(f(widen(i)))", apis=_apis)
def rewrite(subject: Subject) -> Sides | None:
    """float32 becomes float64 and back; the float64 check decides whether a difference is rounding."""
    if "torch.float" in subject.expression or subject.case.comparison == "shapes":
        return None
    narrow = [
        name
        for name, tensor in subject.tensors.items()
        if tensor.dtype == "float32" and name in subject.names
    ]
    floats = [name for name, tensor in subject.tensors.items() if tensor.dtype.startswith("float")]
    if not narrow or set(narrow) != set(floats):
        return None
    setup = [f"{name} = {name}.double()" for name in narrow]
    setup.append(f"results = torch.utils._pytree.tree_leaves({subject.expression})")
    setup.append("narrow = {torch.float64: torch.float32, torch.complex128: torch.complex64}")
    narrowing = "[r.to(narrow.get(r.dtype, r.dtype)) if isinstance(r, torch.Tensor) else r for r in results]"
    left = f"torch.utils._pytree.tree_leaves({subject.expression})"
    return Sides(subject.program(left), subject.program(narrowing, setup))
