"""Rule 16 for Keras: a layer made from its configuration and weights, and a functional model of it."""

from __future__ import annotations

from fuzzing.equivalence import layers
from fuzzing.equivalence.rule import Sides, register_rule


@register_rule(
    "keras-save-load", number=16, equation="f(i) = from_config(f's configuration and weights)(i)",
    apis=layers.names, draw=layers.draw, library="keras",
)  # fmt: skip
def rewrite(subject: layers.LayerSubject) -> Sides | None:
    """Another layer, built for the same input."""
    setup = [
        "layer = type(self.layer).from_config(self.layer.get_config())",
        f"layer.build({subject.shape})",
        "layer.set_weights(self.layer.get_weights())",
    ]
    return Sides(subject.program(), subject.program("layer(input)", setup))


@register_rule(
    "keras-model", equation="f(i) = Model(inputs, f(inputs))(i)",
    apis=layers.names, draw=layers.draw, library="keras",
)  # fmt: skip
def rewrite_model(subject: layers.LayerSubject) -> Sides | None:
    """The layer is traced on an input without values."""
    setup = [
        f"traced = keras.Input(batch_shape={subject.shape})",
        "model = keras.Model(traced, self.layer(traced))",
    ]
    return Sides(subject.program(), subject.program("model(input)", setup))
