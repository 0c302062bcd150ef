"""Rule 8: an operator computes the same for a sparse tensor as for the dense one."""

from __future__ import annotations

from functools import partial

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_PRODUCTS = {"torch.mm": 2, "torch.addmm": 3, "torch.matmul": 2, "torch.mv": 2}
#: Operators that give 0 for 0, so that torch applies them to the stored values.
_POINTWISE = tuple(
    f"torch.{name}"
    for name in (
        "abs", "asin", "asinh", "atan", "ceil", "erf", "expm1", "floor", "frac", "log1p", "neg", "rad2deg",
        "deg2rad", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
        "signbit", "isnan", "isinf", "isposinf", "isneginf", "nan_to_num", "positive", "asinh", "atanh",
        "conj_physical", "sum", "clone",
    )
)  # fmt: skip
_LAYOUTS = {"coo": "to_sparse()", "csr": "to_sparse_csr()", "csc": "to_sparse_csc()"}
_HELPER = """

def dense(result):
    return result.to_dense() if result.layout != torch.strided else result
"""


def _apis() -> tuple[str, ...]:
    return (*_PRODUCTS, *_POINTWISE)


def _draw(api: str, rng: Rng) -> TestCase:
    rows, inner, columns = draws.lengths(rng, 3, 1, 6)
    dtype = rng.choice(("float32", "float64"))
    shapes: dict[str, tuple[int, ...]] = {"mat": (rows, inner), "other": (inner, columns)}
    if api == "torch.mv":
        shapes["other"] = (inner,)
    if api == "torch.addmm":
        shapes = {"input": (rows, columns), **shapes}
    if api in _POINTWISE:
        shapes = {"mat": shapes["mat"]}
    return draws.call_case(api, {name: draws.uniform(rng, shape, dtype) for name, shape in shapes.items()})


def rewrite(subject: Subject, layout: str) -> Sides | None:
    """Zeroes three fifths of the matrix, makes it sparse on the right side, and the result dense again."""
    if "mat" not in subject.names:
        return None
    name = "mat"
    # Not by a product, which gives -0 where a sparse tensor has 0.
    zeroed = f"{name} = {name}.masked_fill(torch.arange({name}.numel()).reshape({name}.shape) % 5 > 1, 0)"
    result = f"dense({subject.expression})"
    return Sides(
        subject.program(result, [zeroed], helpers=_HELPER),
        subject.program(result, [zeroed, f"{name} = {name}.{_LAYOUTS[layout]}"], helpers=_HELPER),
    )


for _layout in _LAYOUTS:
    register_rule(
        f"sparse-{_layout}", number=8, equation="f(dense(i)) = f(sparse(i))", apis=_apis, draw=_draw
    )(partial(rewrite, layout=_layout))
