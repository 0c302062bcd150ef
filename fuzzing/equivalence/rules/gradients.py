"""A gradient is the slope, and reverse mode agrees with forward mode. In float64."""

from __future__ import annotations

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject

#: `first` is the input that is varied, in the direction of ones with alternating signs.
_HELPER = """

def total(result):
    leaves = torch.utils._pytree.tree_leaves(result)
    floats = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    if any(leaf.dtype != torch.float64 for leaf in floats):
        raise NotImplementedError("it rounds to a narrower type")
    return sum((leaf * (1 + torch.arange(leaf.numel()).reshape(leaf.shape) % 3)).sum() for leaf in floats)


def gradient(value, point):
    if not getattr(value, "requires_grad", False):
        raise NotImplementedError("it has no derivative")
    return torch.autograd.grad(value, point)[0]


def direction(tensor):
    return (1.0 - 2.0 * (torch.arange(tensor.numel()) % 2)).to(tensor.dtype).reshape(tensor.shape)


def differences(call, point, step):
    moves = (step * direction(point), 0.0, -step * direction(point))
    after, here, before = [torch.as_tensor(total(call(point + move))) for move in moves]
    return (after - before) / (2 * step), (after - here) / step - (here - before) / step
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
#: Central differences err by the square of the step times a third derivative, and by rounding divided by the
#: step: 1e-10 of the values each. Where two steps disagree by more than a tenth of what float32 is compared
#: with, there is a kink or a pole between; where the slopes on both sides differ by more than curvature makes
#: of them, there is a kink at the point. Both programs return 0 then.
_SMOOTH = (
    "point = {first}.double()\n"
    "(coarse, _), (fine, jump) = (differences(call, point, step) for step in (1e-5, 5e-6))\n"
    "if not ((coarse - fine).abs() <= 1e-7 * (1 + fine.abs()) and jump.abs() <= 1e-3 * (1 + fine.abs())):\n"
    "    return torch.zeros(())"
)


#: By definition, reverse mode leaves out the rows of `padding_idx`, which differences see.
_NO_SLOPE = ("embedding",)
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


def _programs(subject: Subject, left: list[str], right: list[str]) -> Sides | None:
    """Programs that return `slope`, with the call as a function of the first input in float64."""
    floats = [name for name in subject.names if subject.tensors[name].dtype in ("float32", "float64")]
    if not floats or subject.case.comparison == "shapes" or subject.layer or "dtype=" in subject.expression:
        return None
    first = floats[0]
    others = [f"{name} = {name}.double()" for name in floats[1:]]
    call = f"call = lambda {first}: {subject.expression}"
    setups = ([*others, call, *(way.format(first=first) for way in ways)] for ways in (left, right))
    return Sides(*(subject.program("slope", setup, helpers=_HELPER) for setup in setups))


def rewrite(subject: Subject) -> Sides | None:
    """The derivative of a weighted sum of the results, by reverse and by forward mode."""
    return _programs(subject, [_REVERSE], [_FORWARD])


def rewrite_differences(subject: Subject) -> Sides | None:
    """The same derivative by central differences and by reverse mode."""
    narrow = "slope = torch.as_tensor(slope).float()"
    return _programs(subject, [_SMOOTH, "slope = fine", narrow], [_SMOOTH, _REVERSE, narrow])


register_rule(
    "forward-reverse", equation="derivative of f at i by reverse mode = by forward mode", apis=_apis
)(rewrite)
register_rule(
    "finite-differences",
    equation="(f(i + h) - f(i - h)) / 2h = gradient of f at i, but for O(h²)",
    apis=lambda: tuple(api for api in _apis() if not any(word in api for word in _NO_SLOPE)),
)(rewrite_differences)
