"""An Einstein sum is a matrix product of permuted and reshaped inputs."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

#: API → shapes by letter, the API's call, and the Einstein sum.
_SUMS = {
    "torch.matmul": ("bij", "bjk", "torch.matmul(x, y)", "bij,bjk->bik"),
    "torch.bmm": ("bij", "bjk", "torch.bmm(x, y)", "bij,bjk->bik"),
    "torch.mm": ("ij", "jk", "torch.mm(x, y)", "ij,jk->ik"),
    "torch.outer": ("i", "j", "torch.outer(x, y)", "i,j->ij"),
    "torch.dot": ("i", "i", "torch.dot(x, y)", "i,i->"),
    "torch.mv": ("ij", "j", "torch.mv(x, y)", "ij,j->i"),
    "torch.kron": ("ij", "kl", "torch.kron(x, y)", "ij,kl->ikjl"),
    "torch.tensordot": ("ijk", "jkl", "torch.tensordot(x, y, 2)", "ijk,jkl->il"),
    "torch.inner": ("ij", "kj", "torch.inner(x, y)", "ij,kj->ik"),
    "torch.nn.functional.linear": ("bij", "kj", "torch.nn.functional.linear(x, y)", "bij,kj->bik"),
    "torch.nn.functional.bilinear": (
        "bi", "oij", "torch.nn.functional.bilinear(x, x[:, :1], y[:, :, :1].contiguous())", "bi,bj,oij->bo",
    ),
    "torch.linalg.multi_dot": ("ij", "jk", "torch.linalg.multi_dot([x, y, y.T])", "ij,jk,lk->il"),
    "torch.einsum": ("bhid", "bhjd", "(x.unsqueeze(3) * y.unsqueeze(2)).sum(-1)", "bhid,bhjd->bhij"),
    "torch.baddbmm": (
        "bij", "bjk", "torch.baddbmm(torch.zeros(x.shape[0], x.shape[1], y.shape[2], dtype=x.dtype), x, y)",
        "bij,bjk->bik",
    ),
    "torch.chain_matmul": ("ij", "jk", "torch.linalg.multi_dot([x, y])", "ij,jk->ik"),
    "torch.vdot": ("i", "i", "torch.vdot(x, y)", "i,i->"),
    "torch.cross": ("i", "i", "torch.linalg.vecdot(x, y)", "i,i->"),
}  # fmt: skip


def _apis() -> tuple[str, ...]:
    return tuple(_SUMS)


def _draw(api: str, rng: Rng) -> TestCase:
    one, other, _, _ = _SUMS[api]
    sizes = {letter: rng.between(1, 6) for letter in sorted({*one, *other})}
    shapes = {"x": tuple(sizes[c] for c in one), "y": tuple(sizes[c] for c in other)}
    dtype = rng.choice(("float32", "float64"))
    case = draws.call_case(
        "torch.mul", {name: draws.uniform(rng, shape, dtype) for name, shape in shapes.items()}
    )
    return TestCase(case.program, case.inputs, draws.renamed(case.provenance, api))


@register_rule("einsum", equation="einsum(i, j) = matmul(permute(i), permute(j))", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """The API's product, and the same as an Einstein sum."""
    found = _SUMS.get(subject.case.provenance.operator)
    if found is None or subject.names != ("x", "y"):
        return None
    _, _, call, equation = found
    operands = {"bi,bj,oij->bo": "x, x[:, :1], y[:, :, :1]", "ij,jk,lk->il": "x, y, y"}.get(equation, "x, y")
    result = f'torch.einsum("{equation}", {operands})'
    if equation.endswith("->ikjl"):
        result += ".reshape(x.shape[0] * y.shape[0], -1)"
    return Sides(subject.program(call), subject.program(result))
