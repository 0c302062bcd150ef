"""Rule 5 for Keras: a separable convolution is a depthwise and a pointwise one."""

from __future__ import annotations

from fuzzing.equivalence import layers
from fuzzing.equivalence.rule import Sides, register_rule


def _apis() -> tuple[str, ...]:
    return tuple(api for api in layers.with_setting("depth_multiplier") if "Separable" in api)


@register_rule(
    "keras-separable", number=5, equation="f(i) = pointwise(depthwise(i))",
    apis=_apis, draw=layers.draw, library="keras",
)  # fmt: skip
def rewrite(subject: layers.LayerSubject) -> Sides | None:
    """The second convolution has a kernel of length 1."""
    setup = [
        "layer = self.layer",
        "depthwise = keras.ops.depthwise_conv(input, layer.depthwise_kernel, layer.strides, layer.padding, "
        "layer.data_format, layer.dilation_rate)",
        "result = keras.ops.conv(depthwise, layer.pointwise_kernel, 1, 'valid', layer.data_format)",
    ]
    return Sides(
        subject.program(), subject.program("result + layer.bias if layer.use_bias else result", setup)
    )
