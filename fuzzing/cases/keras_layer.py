"""KerasLayer: one layer, activation or operation of Keras 3 with one setting of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Tuple

from fuzzing.cases import canonical_json, source_templates
from fuzzing.cases.argument_reader import kwargs_from_json, list_from_json
from fuzzing.cases.argument_text import render_call
from fuzzing.cases.arguments import (
    Argument,
    Kwargs,
    NewObject,
    TensorArg,
    argument_to_json,
    check_dotted,
    kwargs_to_json,
    sorted_kwargs,
    tensors_in,
)
from fuzzing.cases.programs import register_kind
from fuzzing.errors import CaseFormatError

_KEYS = frozenset({"layer", "kwargs", "inputs", "call", "seed"})
_NARROW = frozenset({"float16", "bfloat16", "float32"})

#: Weights are in [-0.5, 0.5), variances in [0.5, 1.5); seed generators keep their state. Names of layers
#: count up within a process, so weights are seeded by their own name and position.
_FILL = (
    source_templates.DRAW
    + '''

def fill(model, seed):
    """Gives every floating weight of the model a value of its own."""
    for place, weight in enumerate(model.weights):
        name = weight.path.rsplit("/", 1)[-1]
        if "float" in str(weight.dtype):
            low = 0.5 if "variance" in name else -0.5
            weight.assign(low + draw(f"{place}:{name}", tuple(weight.shape), seed))
    return model
'''
)


@register_kind
@dataclass(frozen=True, eq=False)
class KerasLayer:
    """`layer` applied to inputs, as a functional model.

    layer   a class below keras.layers, made with `kwargs` and called with `inputs` and `call`; or a function
            (keras.activations.relu, keras.ops.add), called with `inputs` and `kwargs`
    inputs  positional arguments of the call. Each tensor has its dtype and shape, batch dimension included,
            since Keras declares its inputs
    seed    of the weights, 0 ≤ seed < 2**64
    """

    kind: ClassVar[str] = "KerasLayer"
    frontend: ClassVar[str] = "keras"
    filename: ClassVar[str] = "layer.json"

    layer: str
    kwargs: Kwargs = ()
    inputs: Tuple[Argument, ...] = ()
    call: Kwargs = ()
    seed: int = 0

    def __post_init__(self) -> None:
        check_dotted(self.layer, "keras")
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "kwargs", sorted_kwargs(dict(self.kwargs)))
        object.__setattr__(self, "call", sorted_kwargs(dict(self.call)))
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 64:
            raise CaseFormatError("a program's seed must lie in 0..2**64-1")
        if self.call and not self._is_layer:
            raise CaseFormatError(f"{self.layer} is a function: its keyword arguments are its kwargs")
        if not self.tensors:
            raise CaseFormatError("a Keras model needs at least one input")
        if any(tensor.dtype is None or tensor.shape is None for tensor in self.tensors):
            raise CaseFormatError("an input of a Keras model needs its dtype and its shape")
        if any(tensor.strides is not None or tensor.layout != "strided" for tensor in self.tensors):
            raise CaseFormatError("an input of a Keras model has neither strides nor a layout")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KerasLayer) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    @property
    def _is_layer(self) -> bool:
        return self.layer.rsplit(".", 1)[-1][:1].isupper()

    @cached_property
    def tensors(self) -> Tuple[TensorArg, ...]:
        """The inputs, in the order of the model's arguments."""
        return tensors_in(iter((self.inputs, dict(self.kwargs), dict(self.call))))

    def to_bytes(self) -> bytes:
        """The layer as canonical JSON."""
        return canonical_json.to_text(
            {
                "layer": self.layer,
                "kwargs": kwargs_to_json(self.kwargs),
                "inputs": [argument_to_json(item) for item in self.inputs],
                "call": kwargs_to_json(self.call),
                "seed": self.seed,
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> KerasLayer:
        """The inverse of `to_bytes`; raises CaseFormatError for any other bytes."""
        obj = canonical_json.from_text(data, _KEYS, cls.filename)
        layer = cls(
            obj["layer"],
            kwargs_from_json(obj["kwargs"]),
            list_from_json(obj["inputs"]),
            kwargs_from_json(obj["call"]),
            obj["seed"],
        )
        canonical_json.check_spelling(data, layer.to_bytes(), cls.filename)
        return layer

    def widened(self) -> KerasLayer:
        """The layer in double precision: float64 for every narrower float type named in it."""
        return KerasLayer(self.layer, _widen(self.kwargs), _widen(self.inputs), _widen(self.call), self.seed)

    def source(self) -> str:
        """Python text that defines `make()`, a keras.Model, and `arrange(inputs)`, its arguments."""
        declared = "".join(
            f"    {tensor.name} = keras.Input(batch_shape={tensor.shape!r}, dtype={tensor.dtype!r}, "
            f"name={tensor.name!r})\n"
            for tensor in self.tensors
        )
        names = ", ".join(tensor.name for tensor in self.tensors)
        if self._is_layer:
            made = f"{self.layer}({render_call((), self.kwargs)})({render_call(self.inputs, self.call)})"
        else:
            # Called by a layer: some functions take fewer arguments with symbolic tensors.
            call = f"{self.layer}({render_call(self.inputs, self.kwargs)})"
            made = f"keras.layers.Lambda(apply, autocast=False)([{names}])"
            declared = (
                f"    def apply(given):\n        [{names}] = given\n        return {call}\n\n{declared}"
            )
        return (
            f"import hashlib\n\nimport keras\nimport numpy as np\n\n{_FILL}\n"
            + f"\ndef make():\n{declared}    model = keras.Model([{names}], {made})\n"
            + f"    return fill(model, {self.seed})\n\n"
            + "\ndef arrange(inputs):\n    return ["
            + ", ".join(f"inputs[{tensor.name!r}]" for tensor in self.tensors)
            + "]\n"
        )


def _widen(argument: Any) -> Any:
    """`argument` with "float64" for every narrower float type; Keras's type names are texts."""
    if isinstance(argument, str):
        return "float64" if argument in _NARROW else argument
    if isinstance(argument, (list, tuple)):
        return type(argument)(_widen(item) for item in argument)
    if isinstance(argument, dict):
        return {key: _widen(item) for key, item in argument.items()}
    if isinstance(argument, TensorArg):
        return TensorArg(argument.name, dtype=_widen(argument.dtype), shape=argument.shape)
    if isinstance(argument, NewObject):
        return NewObject(argument.api, _widen(argument.args), _widen(argument.kwargs))
    return argument
