"""What is quantized, dequantized and quantized again is unchanged."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

#: API → text of a round of quantization and back; `x` is the input. A second round changes nothing.
_ROUNDS = {
    "torch.quantize_per_tensor": "torch.quantize_per_tensor(x, 0.25, 3, torch.quint8).dequantize()",
    "torch.quantize_per_channel": "torch.quantize_per_channel(x, torch.full((x.shape[0],), 0.5), "
    "torch.zeros(x.shape[0], dtype=torch.long), 0, torch.qint8).dequantize()",
    "torch.fake_quantize_per_tensor_affine": "torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 255)",
    "torch.fake_quantize_per_channel_affine": "torch.fake_quantize_per_channel_affine("
    "x, torch.full((x.shape[0],), 0.5), torch.zeros(x.shape[0], dtype=torch.int32), 0, -128, 127)",
    "torch.Tensor.bfloat16": "x.bfloat16().float()",
    "torch.Tensor.half": "x.half().float()",
    "torch.float8_e4m3fn": "x.to(torch.float8_e4m3fn).float()",
    "torch.float8_e5m2": "x.to(torch.float8_e5m2).float()",
}


def _apis() -> tuple[str, ...]:
    return tuple(_ROUNDS)


def _draw(api: str, rng: Rng) -> TestCase:
    shape = (rng.between(1, 4), rng.between(1, 33))
    case = draws.call_case("torch.clone", {"x": draws.uniform(rng, shape, bound=20.0)})
    return TestCase(case.program, case.inputs, draws.renamed(case.provenance, api))


@register_rule("quantized", equation="round(round(i)) = round(i)", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """One round of quantization, and two."""
    found = _ROUNDS.get(subject.case.provenance.operator)
    if found is None:
        return None
    return Sides(subject.program(found), subject.program(found, [f"x = {found}"]))
