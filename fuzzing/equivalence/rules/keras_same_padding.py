"""Rule 2 for Keras, whose convolutions may have strides with `same`: it pads as TensorFlow does."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import layers
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.rng import Rng


def _apis() -> tuple[str, ...]:
    found = layers.with_setting("kernel_size", "padding", "dilation_rate")
    return tuple(api for api in found if "Transpose" not in api and "LSTM" not in api)


def _draw(api: str, rng: Rng) -> TestCase:
    drawn = layers.LayerSubject(layers.draw(api, rng))
    # Keras takes no strides together with dilations.
    more = {"dilation_rate": 2} if drawn.settings["strides"] == 1 and rng.chance(0.3) else {}
    return layers.layer_case(api, drawn.settings | {"padding": "same"} | more, drawn.shape, rng)


def widths(length: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Zeros before and after a dimension: as many as ⌈length / stride⌉ windows need, the odd one after."""
    windows = -(-length // stride)
    total = max((windows - 1) * stride + dilation * (kernel - 1) + 1 - length, 0)
    return total // 2, total - total // 2


@register_rule(
    "keras-same-padding", number=2, equation="f(i, same padding) = f(pad(i), valid)",
    apis=_apis, draw=_draw, library="keras",
)  # fmt: skip
def rewrite(subject: layers.LayerSubject) -> Sides | None:
    """Pads the spatial dimensions, which are all but the first and the last."""
    given = subject.settings
    if given.get("padding") != "same":
        return None
    window = [given.get(name, 1) for name in ("kernel_size", "strides", "dilation_rate")]
    if not all(isinstance(one, int) for one in window):
        return None
    padding = [(0, 0), *(widths(length, *window) for length in subject.shape[1:-1]), (0, 0)]
    padded = f"self.layer(keras.ops.pad(input, {padding}))"
    return Sides(subject.program(), subject.program(padded, made=subject.made(padding="valid")))
