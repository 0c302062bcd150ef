"""Layers of the installed Keras, on its torch backend: which rules apply to, and programs around them.

Needs KERAS_BACKEND=torch before keras is imported, which `installed` sets.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from fuzzing.backends.shared.keras_models import ENVIRONMENT
from fuzzing.cases import KerasLayer, Provenance, Recipe, TensorArg, TestCase
from fuzzing.cases.argument_text import render_call
from fuzzing.equivalence import draws
from fuzzing.errors import InternalError
from fuzzing.rng import Rng

LIBRARY = "keras"
#: What a setting that a layer requires may be, by its name; a layer that requires another is left out.
_SETTINGS: Mapping[str, Sequence[Any]] = {
    "units": (1, 3), "filters": (1, 3), "kernel_size": (1, 2, 3), "pool_size": (2, 3), "output_size": (1, 2),
    "n": (2,), "rate": (0.5,), "scale": (0.5,), "height": (2, 5), "width": (2, 5), "activation": ("relu",),
    "groups": (2,),
}  # fmt: skip
#: What is drawn though no layer requires it.
_OPTIONAL: Mapping[str, Sequence[Any]] = {
    "strides": (1, 2),
    "padding": ("valid", "same"),
    "use_bias": (True, False),
    "depth_multiplier": (1, 2),
    "return_sequences": (True, False),
}
#: Lengths of an input's dimensions by their number; 4 fits every setting above.
_SHAPES = {2: (3, 4), 3: (3, 6, 4), 4: (3, 6, 6, 4), 5: (2, 4, 4, 4, 4)}
#: How often settings are drawn before a layer is said to take none of them.
_ATTEMPTS = 6


@dataclass(frozen=True)
class LayerSubject:
    """A call of a layer with one input, `input`; what a rule rewrites."""

    case: TestCase

    @property
    def layer(self) -> KerasLayer:
        """The layer and its settings."""
        if not isinstance(self.case.program, KerasLayer):
            raise InternalError(f"a rule about layers was given a {self.case.program.kind}")
        return self.case.program

    @property
    def api(self) -> str:
        """The layer's dotted name."""
        return self.layer.layer

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make the layer."""
        return dict(self.layer.kwargs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The input's."""
        return tuple(self.layer.tensors[0].shape or ())

    def made(self, **changed: Any) -> str:
        """The expression that makes the layer, with other settings. Weights are drawn by the name."""
        settings = self.settings | changed | {"name": "layer"}
        return f"{self.api}({render_call((), tuple(sorted(settings.items())))})"

    def program(
        self, result: str = "self.layer(input)", setup: Sequence[str] = (), made: str = "",
        shape: Sequence[int] = (),
    ) -> str:  # fmt: skip
        """The text of a program that has the layer as `self.layer`.

        result  the expression it returns
        setup   statements before it
        made    the expression that makes the layer, by default as it is
        shape   of the input that the layer is built for, by default the subject's
        """
        body = "".join(
            f"        {line}\n"
            for statement in [*setup, f"return {result}"]
            for line in statement.split("\n")
        )
        return _PROGRAM.format(
            made=made or self.made(), shape=tuple(shape or self.shape), body=body, seed=self.layer.seed
        )


#: Names of weights count up within a process unless the session is cleared; they decide what is drawn.
_PROGRAM = """import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import torch

SEED = {seed}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        keras.utils.clear_session()
        self.layer = {made}
        self.layer.build({shape})

    def forward(self, input):
{body}"""


def installed() -> Any:
    """The module keras on its torch backend; raises ImportError if it is not installed."""
    os.environ.update(ENVIRONMENT)
    import keras

    return keras


@cache
def names() -> tuple[str, ...]:
    """The layers that give finite floats of one float input, the same ones each time, by trial."""
    return tuple(name for name in sorted(_classes()) if _accepted(name) is not None)


def with_setting(*settings: str) -> tuple[str, ...]:
    """Those of them whose signature has all these settings."""
    return tuple(name for name in names() if set(settings) <= set(_parameters(name)))


def draw(api: str, rng: Rng) -> TestCase:
    """A call of a layer with settings that it takes."""
    accepted = _accepted(api)
    if accepted is None:
        raise InternalError(f"{api} is none of the layers that rules are about")
    shape, fallback = accepted
    settings = next(
        (drawn for drawn in _draws(api, rng) if _runs(api, drawn, shape)),
        fallback,
    )
    return layer_case(api, settings, shape, rng)


def layer_case(api: str, settings: Mapping[str, Any], shape: tuple[int, ...], rng: Rng) -> TestCase:
    """The subject of a layer with these settings and an input of this shape."""
    given = TensorArg("input", dtype="float32", shape=shape)
    program = KerasLayer(api, tuple(settings.items()), (given,), seed=rng.seed())
    data: Recipe = draws.uniform(rng, shape)
    return TestCase(
        program, (("input", data),), Provenance("eagle-keras", api, api, LIBRARY, version(LIBRARY))
    )


def _classes() -> dict[str, type]:
    """Dotted name → class, each class once under its first name."""
    keras, found = installed(), dict[type, str]()
    for name in sorted(dir(keras.layers)):
        one = getattr(keras.layers, name)
        # Layers of image preprocessing take a single image too, which is then no batch, and most are random.
        if (
            inspect.isclass(one)
            and issubclass(one, keras.layers.Layer)
            and "preprocessing" not in one.__module__
        ):
            found.setdefault(one, f"keras.layers.{name}")
    return {name: one for one, name in found.items()}


@cache
def _parameters(api: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(_classes()[api]).parameters


def _required(api: str) -> list[str]:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        name
        for name, one in _parameters(api).items()
        if name != "self" and one.default is inspect.Parameter.empty and one.kind in plain
    ]


def _draws(api: str, rng: Rng) -> Iterator[dict[str, Any]]:
    wanted = {name: _SETTINGS[name] for name in _required(api)}
    wanted |= {name: some for name, some in _OPTIONAL.items() if name in _parameters(api)}
    for _ in range(_ATTEMPTS):
        yield {name: rng.choice(some) for name, some in wanted.items()}


@cache
def _accepted(api: str) -> tuple[tuple[int, ...], dict[str, Any]] | None:
    """The shape of an input and the settings that a layer takes; None if it takes none of ours."""
    if not set(_required(api)) <= set(_SETTINGS):
        return None
    settings = {name: _SETTINGS[name][-1] for name in _required(api)}
    # Layers for images take four dimensions, all others their fewest.
    return next(((shape, settings) for shape in _SHAPES.values() if _runs(api, settings, shape)), None)


def _runs(api: str, settings: Mapping[str, Any], shape: tuple[int, ...]) -> bool:
    import torch

    try:
        layer = _classes()[api](**settings)
        given = torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)
        with torch.no_grad():
            first, second = (layer(given.clone()) for _ in range(2))
    except Exception:  # noqa: BLE001 - whatever Keras raises; the layer does not take them
        return False
    return (
        isinstance(first, torch.Tensor)
        and first.is_floating_point()
        and bool(first.isfinite().all())
        and torch.equal(first, second)
        # A variance must be positive, as drawn weights are not.
        and not any("variance" in weight.path for weight in layer.weights)
    )
