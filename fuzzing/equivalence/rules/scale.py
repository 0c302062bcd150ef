"""Rule 9: an operator on values in [0, 255] is that on values in [0, 1], the result scaled back."""

from __future__ import annotations

from typing import Any

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_F = "torch.nn.functional."
#: Operators on images that are homogeneous, f(c·i) = c·f(i) for c > 0, and their settings.
_SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    f"{_F}interpolate": tuple(
        {"scale_factor": scale, "mode": mode}
        for scale in (0.5, 1.5, 2.0)
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    ),
    f"{_F}avg_pool2d": ({"kernel_size": 2}, {"kernel_size": 3, "stride": 1, "padding": 1}),
    f"{_F}max_pool2d": ({"kernel_size": 2}, {"kernel_size": 3, "stride": 1, "padding": 1}),
    f"{_F}lp_pool2d": ({"norm_type": 2.0, "kernel_size": 2},),
    f"{_F}adaptive_avg_pool2d": ({"output_size": (3, 2)}, {"output_size": 1}),
    f"{_F}adaptive_max_pool2d": ({"output_size": (3, 2)}, {"output_size": 1}),
    f"{_F}pixel_unshuffle": ({"downscale_factor": 2},),
    f"{_F}unfold": ({"kernel_size": 2, "stride": 2}, {"kernel_size": 3, "dilation": 2, "padding": 1}),
    f"{_F}pad": tuple(
        {"pad": (1, 2, 0, 1), "mode": mode} for mode in ("constant", "reflect", "replicate", "circular")
    ),
    f"{_F}relu": ({},),
    f"{_F}leaky_relu": ({},),
    "torch.rot90": ({"k": 1, "dims": [2, 3]},),
    "torch.flip": ({"dims": [3]}, {"dims": [2, 3]}),
    "torch.cumsum": ({"dim": 2},),
    "torch.sum": ({"dim": 1}, {}),
    "torch.mean": ({"dim": 3}, {}),
    "torch.std": ({"dim": 2},),
    "torch.median": ({},),
    "torch.amax": ({"dim": 1},),
    "torch.sort": ({"dim": 2, "stable": True},),
    "torch.fft.rfft": ({"dim": 2},),
    "torch.linalg.vector_norm": ({"dim": 1}, {"ord": 1}),
}


def _apis() -> tuple[str, ...]:
    return tuple(_SETTINGS)


def _draw(api: str, rng: Rng) -> TestCase:
    shape = (*draws.lengths(rng, 2, 1, 4), *(2 * rng.between(3, 7) for _ in range(2)))
    return draws.call_case(api, {"input": draws.uniform(rng, shape)}, rng.choice(_SETTINGS[api]))


@register_rule("value-range", number=9, equation="f(255·i) = 255·f(i)", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """The result scaled back; whole numbers, such as indices, do not scale."""
    if subject.api not in _SETTINGS or subject.names != ("input",):
        return None
    flat = f"results = torch.utils._pytree.tree_leaves({subject.expression})"
    back = "[r * 255 if r.is_floating_point() or r.is_complex() else r for r in results]"
    image = "image = input * 255"
    return Sides(
        subject.program("results", [image, "input = image", flat]),
        # image / 255 may differ from the input by a rounding, so it is what is normalized.
        subject.program(back, [image, "input = image / 255", flat]),
    )
