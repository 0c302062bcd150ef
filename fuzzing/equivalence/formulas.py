"""What a function computes by torch's documentation, in terms of other functions.

Each entry is (parameters with their defaults, expression over them). Required parameters have no default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Formula:
    """A documented formula.

    parameters  of the API in order; with defaults those that may be omitted, as Python text
    expression  over the parameters, as Python text
    unless      a parameter that must be false or absent for the formula to hold
    """

    parameters: tuple[str, ...]
    expression: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    unless: tuple[str, ...] = ()


_ACTIVATIONS = {
    "silu": "input * torch.sigmoid(input)",
    "mish": "input * torch.tanh(torch.nn.functional.softplus(input))",
    "logsigmoid": "torch.log(1 / (1 + torch.exp(-input)))",
    "relu6": "torch.minimum(torch.maximum(input, input.new_zeros(())), input.new_full((), 6))",
    "hardsigmoid": "torch.clamp(input / 6 + 0.5, 0, 1)",
    "hardswish": "input * torch.clamp(input + 3, 0, 6) / 6",
    "softsign": "input / (1 + input.abs())",
    "tanhshrink": "input - torch.tanh(input)",
    "selu": "1.0507009873554804934193349852946 * (input.clamp(min=0) + "
    "(1.6732632423543772848170429916717 * (torch.exp(input) - 1)).clamp(max=0))",
}
_F = "torch.nn.functional."
_AFFINE = "({0}) * (1 if weight is None else weight{1}) + (0 if bias is None else bias{1})"
_NORM_DEFAULTS = {"weight": "None", "bias": "None", "eps": "1e-5"}
_CHANNELS = ".reshape(-1, *([1] * (input.dim() - 2)))"

FORMULAS: Mapping[str, Formula] = {
    **{f"{_F}{name}": Formula(("input",), text, unless=("inplace",)) for name, text in _ACTIVATIONS.items()},
    f"{_F}batch_norm": Formula(
        ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
        _AFFINE.format(
            f"(input - running_mean{_CHANNELS}) / torch.sqrt(running_var{_CHANNELS} + eps)", _CHANNELS
        ),
        _NORM_DEFAULTS,
        ("training",),
    ),
    f"{_F}layer_norm": Formula(
        ("input", "normalized_shape", "weight", "bias", "eps"),
        _AFFINE.format(
            "(input - input.mean(axes, keepdim=True)) / "
            "torch.sqrt(input.var(axes, correction=0, keepdim=True) + eps)",
            "",
        ).replace("axes", "tuple(range(-len(normalized_shape), 0))"),
        _NORM_DEFAULTS,
    ),
    f"{_F}elu": Formula(
        ("input", "alpha"), "torch.where(input > 0, input, alpha * (torch.exp(input) - 1))", {"alpha": "1.0"}
    ),
    f"{_F}celu": Formula(
        ("input", "alpha"),
        "input.clamp(min=0) + (alpha * (torch.exp(input / alpha) - 1)).clamp(max=0)",
        {"alpha": "1.0"},
    ),
    f"{_F}leaky_relu": Formula(
        ("input", "negative_slope"),
        "input.clamp(min=0) + negative_slope * input.clamp(max=0)",
        {"negative_slope": "0.01"},
    ),
    f"{_F}softmin": Formula(("input", "dim"), "torch.exp(-input) / torch.exp(-input).sum(dim, keepdim=True)"),
    f"{_F}softmax": Formula(("input", "dim"), "torch.exp(input) / torch.exp(input).sum(dim, keepdim=True)"),
    f"{_F}log_softmax": Formula(
        ("input", "dim"), "input - torch.log(torch.exp(input).sum(dim, keepdim=True))"
    ),
    f"{_F}linear": Formula(
        ("input", "weight", "bias"),
        "torch.tensordot(input, weight, ([-1], [-1])) + (0 if bias is None else bias)",
        {"bias": "None"},
    ),
    f"{_F}cosine_similarity": Formula(
        ("x1", "x2", "dim", "eps"),
        "(x1 * x2).sum(dim) / ((x1 * x1).expand_as(x1 * x2).sum(dim).sqrt().clamp(min=eps) * "
        "(x2 * x2).expand_as(x1 * x2).sum(dim).sqrt().clamp(min=eps))",
        {"dim": "1", "eps": "1e-8"},
    ),
    f"{_F}pairwise_distance": Formula(
        ("x1", "x2", "p", "eps", "keepdim"),
        "((x1 - x2 + eps).abs() ** p).sum(-1, keepdim=keepdim) ** (1 / p)",
        {"p": "2.0", "eps": "1e-6", "keepdim": "False"},
    ),
    "torch.addcmul": Formula(
        ("input", "tensor1", "tensor2", "value"), "input + value * tensor1 * tensor2", {"value": "1"}
    ),
    "torch.addcdiv": Formula(
        ("input", "tensor1", "tensor2", "value"), "input + value * (tensor1 / tensor2)", {"value": "1"}
    ),
    "torch.addmm": Formula(
        ("input", "mat1", "mat2", "beta", "alpha"),
        "(0 if beta == 0 else beta * input) + alpha * (mat1 @ mat2)",
        {"beta": "1", "alpha": "1"},
    ),
    "torch.lerp": Formula(("input", "end", "weight"), "input + weight * (end - input)"),
    "torch.logaddexp": Formula(("input", "other"), "torch.log(torch.exp(input) + torch.exp(other))"),
    "torch.hypot": Formula(("input", "other"), "torch.sqrt(input * input + other * other)"),
    "torch.outer": Formula(("input", "vec2"), "input.unsqueeze(1) * vec2.unsqueeze(0)"),
    "torch.trace": Formula(("input",), "torch.diagonal(input).sum()"),
    "torch.dist": Formula(("input", "other", "p"), "torch.linalg.vector_norm(input - other, p)", {"p": "2"}),
}
