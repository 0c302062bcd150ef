"""Rule 13: what is encoded and decoded is unchanged."""

from __future__ import annotations

from dataclasses import dataclass

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng


@dataclass(frozen=True)
class _Inverse:
    """decode(encode(input)), as text over `x`, for inputs with so many dimensions."""

    text: str
    rank: int = 3


_INVERSES = {
    "torch.fft.fft": _Inverse("torch.fft.ifft(torch.fft.fft(x)).real"),
    "torch.fft.rfft": _Inverse("torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1])"),
    "torch.fft.fft2": _Inverse("torch.fft.ifft2(torch.fft.fft2(x)).real"),
    "torch.fft.rfftn": _Inverse("torch.fft.irfftn(torch.fft.rfftn(x), s=x.shape)"),
    "torch.fft.fftshift": _Inverse("torch.fft.ifftshift(torch.fft.fftshift(x))"),
    "torch.nn.functional.pixel_unshuffle": _Inverse(
        "torch.nn.functional.pixel_shuffle(torch.nn.functional.pixel_unshuffle(x, 2), 2)"
    ),
    "torch.nn.functional.unfold": _Inverse(
        "torch.nn.functional.fold(torch.nn.functional.unfold(x, 2, stride=2), x.shape[2:], 2, stride=2)", 4
    ),
    "torch.view_as_complex": _Inverse("torch.view_as_real(torch.view_as_complex(x)).reshape(x.shape)"),
    "torch.unbind": _Inverse("torch.stack(torch.unbind(x, 1), 1)"),
    "torch.chunk": _Inverse("torch.cat(torch.chunk(x, 3, 2), 2)"),
    "torch.tensor_split": _Inverse("torch.cat(torch.tensor_split(x, (1, 3), 2), 2)"),
    "torch.roll": _Inverse("torch.roll(torch.roll(x, (2, -1), (0, 2)), (-2, 1), (0, 2))"),
    "torch.flip": _Inverse("torch.flip(torch.flip(x, (0, 2)), (2, 0))"),
    "torch.rot90": _Inverse("torch.rot90(torch.rot90(x, 1, (1, 2)), 3, (1, 2))"),
    "torch.permute": _Inverse("torch.permute(torch.permute(x, (2, 0, 1)), (1, 2, 0))"),
    "torch.frexp": _Inverse("torch.ldexp(*torch.frexp(x))"),
    "torch.logit": _Inverse("torch.sigmoid(torch.logit(x * 0.4 + 0.5)) / 0.4 - 1.25"),
    "torch.atanh": _Inverse("torch.tanh(torch.atanh(x * 0.5)) * 2"),
    "torch.erfinv": _Inverse("torch.erf(torch.erfinv(x * 0.5)) * 2"),
    "torch.expm1": _Inverse("torch.log1p(torch.expm1(x))"),
    "torch.diff": _Inverse("torch.cumsum(torch.diff(x, prepend=torch.zeros_like(x[..., :1])), -1)"),
    "torch.sort": _Inverse("(lambda s: torch.empty_like(x).scatter_(-1, s[1], s[0]))(torch.sort(x, -1))"),
    "torch.linalg.qr": _Inverse("torch.matmul(*torch.linalg.qr(x))"),
    "torch.linalg.svd": _Inverse("(lambda u, s, v: (u * s.unsqueeze(-2)) @ v)(*torch.linalg.svd(x, False))"),
    "torch.linalg.lu": _Inverse("(lambda p, l, u: p @ l @ u)(*torch.linalg.lu(x))"),
    "torch.Tensor.to_sparse": _Inverse("x.to_sparse().to_dense()"),
    "torch.Tensor.to_sparse_csr": _Inverse("x.to_sparse_csr().to_dense()", 2),
    "torch.nn.utils.rnn.pack_padded_sequence": _Inverse(
        "torch.nn.utils.rnn.pad_packed_sequence("
        "torch.nn.utils.rnn.pack_padded_sequence(x, [len(x)] * x.shape[1]))[0]"
    ),
    "torch.nested.nested_tensor": _Inverse(
        "torch.nested.to_padded_tensor(torch.nested.nested_tensor(list(x)), 0.0)"
    ),
    "torch.utils.dlpack.to_dlpack": _Inverse("torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))"),
}  # fmt: skip


def _apis() -> tuple[str, ...]:
    return tuple(_INVERSES)


def _draw(api: str, rng: Rng) -> TestCase:
    rank = _INVERSES[api].rank
    shape = [2 * rng.between(1, 4) for _ in range(rank)]
    if api == "torch.view_as_complex":
        shape[-1] = 2
    case = draws.call_case("torch.clone", {"x": draws.uniform(rng, tuple(shape))})
    return TestCase(case.program, case.inputs, draws.renamed(case.provenance, api))


@register_rule("inverse", number=13, equation="decode(encode(i)) = i", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """The input, and the input encoded and decoded."""
    found = _INVERSES.get(subject.case.provenance.operator)
    return None if found is None else Sides(subject.program("x"), subject.program(found.text))
