"""Rule 15: a model in inference computes the same in batches of another size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.equivalence import convolutions, draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

#: Modules without parameters of a shape, by the dimensions of their inputs after the first.
_PLAIN: dict[str, int] = {
    **dict.fromkeys((f"torch.nn.{name}" for name in (
        "ReLU", "GELU", "SiLU", "Mish", "ELU", "SELU", "CELU", "Sigmoid", "Tanh", "Softplus", "Softsign",
        "Tanhshrink", "LeakyReLU", "Hardtanh", "Hardswish", "Hardsigmoid", "Hardshrink", "Softshrink",
        "LogSigmoid", "ReLU6", "Flatten",
    )), 2),
    "torch.nn.Softmax2d": 3, "torch.nn.ChannelShuffle": 3, "torch.nn.PixelShuffle": 3,
    "torch.nn.PixelUnshuffle": 3,
    "torch.nn.MaxPool2d": 3, "torch.nn.AvgPool2d": 3, "torch.nn.AdaptiveAvgPool2d": 3,
    "torch.nn.AdaptiveMaxPool2d": 3,
    "torch.nn.LocalResponseNorm": 3, "torch.nn.Upsample": 3, "torch.nn.Unfold": 3,
}  # fmt: skip
_INITS: dict[str, Callable[[Rng], dict[str, Any]]] = {
    "torch.nn.Linear": lambda rng: {"in_features": 4, "out_features": rng.between(1, 5)},
    "torch.nn.BatchNorm1d": lambda _: {"num_features": 4},
    "torch.nn.LayerNorm": lambda _: {"normalized_shape": 4},
    "torch.nn.RMSNorm": lambda _: {"normalized_shape": 4},
    "torch.nn.GroupNorm": lambda _: {"num_groups": 2, "num_channels": 4},
    "torch.nn.InstanceNorm2d": lambda _: {"num_features": 4},
    "torch.nn.BatchNorm2d": lambda _: {"num_features": 4},
    "torch.nn.ChannelShuffle": lambda _: {"groups": 2},
    "torch.nn.PixelShuffle": lambda _: {"upscale_factor": 2},
    "torch.nn.PixelUnshuffle": lambda _: {"downscale_factor": 2},
    "torch.nn.MaxPool2d": lambda rng: {"kernel_size": rng.between(1, 3)},
    "torch.nn.AvgPool2d": lambda rng: {"kernel_size": rng.between(1, 3)},
    "torch.nn.AdaptiveAvgPool2d": lambda rng: {"output_size": rng.between(1, 3)},
    "torch.nn.AdaptiveMaxPool2d": lambda rng: {"output_size": rng.between(1, 3)},
    "torch.nn.LocalResponseNorm": lambda rng: {"size": rng.between(1, 3)},
    "torch.nn.Upsample": lambda rng: {"scale_factor": rng.choice((1.5, 2.0))},
    "torch.nn.Unfold": lambda rng: {"kernel_size": rng.between(1, 3)},
    "torch.nn.TransformerEncoderLayer": lambda rng: {
        "d_model": 4, "nhead": rng.choice((1, 2)), "dim_feedforward": 6, "batch_first": True,
        "norm_first": rng.chance(0.5),
    },
    "torch.nn.GRU": lambda _: {"input_size": 4, "hidden_size": 3, "batch_first": True},
}  # fmt: skip
_RANKS = {
    **_PLAIN, "torch.nn.Linear": 2, "torch.nn.BatchNorm1d": 1, "torch.nn.LayerNorm": 2, "torch.nn.RMSNorm": 2,
    "torch.nn.GroupNorm": 3, "torch.nn.InstanceNorm2d": 3, "torch.nn.BatchNorm2d": 3,
    "torch.nn.TransformerEncoderLayer": 2, "torch.nn.GRU": 2,
}  # fmt: skip


def apis() -> tuple[str, ...]:
    """Modules whose results are one for each sample."""
    return (*_RANKS, *convolutions.MODULES)


def draw(api: str, rng: Rng) -> TestCase:
    """A module with at least two samples."""
    if api in convolutions.MODULES:
        return convolutions.draw(api, rng)
    # Lengths of 4 fit every module above.
    shape = (rng.between(2, 7), *[4] * _RANKS[api])
    init = _INITS[api](rng) if api in _INITS else {}
    return draws.call_case(api, {"input": draws.uniform(rng, shape)}, init=init, seed=rng.seed())


@register_rule(
    "batch-size",
    number=15,
    equation="f(i) = cat(f(first samples of i), f(the others))",
    apis=apis,
    draw=draw,
)
def rewrite(subject: Subject) -> Sides | None:
    """Batches of one sample and of all others; of a recurrent layer the output alone, not the state."""
    shape = subject.tensors["input"].shape if subject.names == ("input",) else ()
    if len(shape) < 2 or shape[0] < 2 or not subject.layer:
        return None
    first = "[0]" if subject.api == "torch.nn.GRU" else ""
    setup = [f"parts = [self.layer(part){first} for part in input.split([1, len(input) - 1])]"]
    return Sides(subject.program(f"self.layer(input){first}"), subject.program("torch.cat(parts)", setup))
