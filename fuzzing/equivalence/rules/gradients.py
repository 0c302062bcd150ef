"""A gradient is the slope, and reverse mode agrees with forward mode. In float64."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

#: `first` is the input that is varied, in the direction of ones with alternating signs.
_HELPER = """

def total(result):
    leaves = torch.utils._pytree.tree_leaves(result)
    floats = [leaf.double() for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    return sum((leaf * (1 + torch.arange(leaf.numel()).reshape(leaf.shape) % 3)).sum() for leaf in floats)


def gradient(value, point):
    if not getattr(value, "requires_grad", False):
        raise NotImplementedError("it has no derivative")
    return torch.autograd.grad(value, point)[0]


def direction(tensor):
    return (1.0 - 2.0 * (torch.arange(tensor.numel()) % 2)).to(tensor.dtype).reshape(tensor.shape)
"""
_REVERSE = (
    "with torch.enable_grad():\n"
    "    point = {first}.double().requires_grad_(True)\n"
    "    slope = (gradient(total(call(point)), point) * direction(point)).sum()"
)
_FORWARD = (
    "point = {first}.double()\n"
    "with torch.enable_grad():\n"
    "    slope = torch.func.jvp(lambda point: total(call(point)), (point,), (direction(point),))[1]"
)


#: Not differentiable at drawn inputs: matrices that are not symmetric, ties, indices that occur twice, signs
#: of singular vectors.
_LEFT_OUT = ("cholesky", "eigh", "unpool", "svd", "eig", "lobpcg", "lstsq", "ldl", "householder", "ormqr")


def _apis() -> tuple[str, ...]:
    left_out = (*_LEFT_OUT, "median", "mode", "sort", "max", "min", "topk", "kthvalue")
    return tuple(
        api
        for api in api_lists.documented()
        if not api.endswith("_") and not any(word in api for word in left_out)
    )


def rewrite(subject: Subject) -> Sides | None:
    """The derivative of a weighted sum of the results, by reverse and by forward mode."""
    floats = [name for name in subject.names if subject.tensors[name].dtype in ("float32", "float64")]
    if not floats or subject.case.comparison == "shapes" or subject.layer or "dtype=" in subject.expression:
        return None
    first = floats[0]
    others = [f"{name} = {name}.double()" for name in floats[1:]]
    call = f"call = lambda {first}: {subject.expression}"
    left, right = ([*others, call, way.format(first=first)] for way in (_REVERSE, _FORWARD))
    return Sides(
        subject.program("slope", left, helpers=_HELPER), subject.program("slope", right, helpers=_HELPER)
    )


register_rule(
    "forward-reverse", equation="derivative of f at i by reverse mode = by forward mode", apis=_apis
)(rewrite)
