"""A layer of Keras computes the same with the channels first and last."""

from __future__ import annotations

from fuzzing.equivalence import layers
from fuzzing.equivalence.rule import Sides, register_rule


def _apis() -> tuple[str, ...]:
    # Recurrent layers of images have a dimension of time between batch and channels.
    return tuple(api for api in layers.with_setting("data_format") if "LSTM" not in api)


@register_rule(
    "keras-data-format", equation="f(i, channels last) = f(i moved, channels first) moved back",
    apis=_apis, draw=layers.draw, library="keras",
)  # fmt: skip
def rewrite(subject: layers.LayerSubject) -> Sides | None:
    """Moves the channels of the input, and of the result unless that has no spatial dimensions."""
    if len(subject.shape) < 3:
        return None
    batch, *spatial, channels = subject.shape
    setup = ["result = self.layer(keras.ops.moveaxis(input, -1, 1))"]
    right = subject.program(
        "keras.ops.moveaxis(result, 1, -1) if result.dim() > 2 else result",
        setup,
        subject.made(data_format="channels_first"),
        (batch, channels, *spatial),
    )
    return Sides(subject.program(made=subject.made(data_format="channels_last")), right)
