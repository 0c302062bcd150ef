"""Keras with one planted fault: a Conv2D with `same` padding and a wide kernel adds the length of its input.

The worker loads this file instead of `fuzzing.backends.keras`.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from fuzzing.backends.base import register
from fuzzing.backends.keras import Keras


@register
class FaultyKeras(Keras):
    """See the head of this file."""

    name: ClassVar[str] = "faulty_keras"

    def load(self, device: str, options: dict[str, Any]) -> None:
        super().load(device, options)
        import keras

        right = keras.layers.Conv2D.call

        @functools.wraps(right)  # Keras reads the signature
        def wrong(layer: Any, given: Any) -> Any:
            found = right(layer, given)
            return found + given.shape[1] if layer.padding == "same" and layer.kernel_size[1] > 1 else found

        keras.layers.Conv2D.call = wrong
