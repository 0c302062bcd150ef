"""Keras itself, on its torch backend, as what is tested: by pairs of equivalent programs."""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import register
from fuzzing.backends.shared import keras_models
from fuzzing.backends.torch import Torch


@register
class Keras(Torch):
    """Runs both programs of a pair, with Keras imported once.

    options: those of torch_eager.
    """

    name: ClassVar[str] = "keras"
    package: ClassVar[str] = "keras"
    import_name: ClassVar[str] = "keras"
    environment: ClassVar[dict[str, str]] = keras_models.ENVIRONMENT
    packages: ClassVar[tuple[str, ...]] = ("keras", "torch", "numpy")

    def load(self, device: str, options: dict[str, Any]) -> None:
        """Imports keras and torch."""
        import keras  # noqa: F401 - a missing package is found here, not at the first case

        super().load(device, options)
