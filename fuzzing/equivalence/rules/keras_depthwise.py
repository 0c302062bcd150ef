"""Rule 4 for Keras: a depthwise convolution is a convolution with as many groups as channels."""

from __future__ import annotations

from fuzzing.equivalence import layers
from fuzzing.equivalence.rule import Sides, register_rule


def _apis() -> tuple[str, ...]:
    return tuple(api for api in layers.with_setting("depth_multiplier") if "Depthwise" in api)


@register_rule(
    "keras-depthwise", number=4, equation="f(i) = grouped convolution(i)",
    apis=_apis, draw=layers.draw, library="keras",
)  # fmt: skip
def rewrite(subject: layers.LayerSubject) -> Sides | None:
    """Groups follow from the kernel's channels: 1 in each of them."""
    setup = [
        "layer, size = self.layer, self.layer.kernel.shape",
        "kernel = keras.ops.reshape(layer.kernel, (*size[:-2], 1, size[-2] * size[-1]))",
        "result = keras.ops.conv(input, kernel, layer.strides, layer.padding, layer.data_format, "
        "layer.dilation_rate)",
    ]
    return Sides(
        subject.program(), subject.program("result + layer.bias if layer.use_bias else result", setup)
    )
