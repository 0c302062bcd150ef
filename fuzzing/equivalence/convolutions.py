"""Convolutions as the rules about them read and draw them: function or module, one to three dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzing.cases import Argument, TensorArg, TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

FUNCTIONS = {f"torch.nn.functional.conv{rank}d": rank for rank in (1, 2, 3)}
MODULES = {f"torch.nn.Conv{rank}d": rank for rank in (1, 2, 3)}
_CALL = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_INIT = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias")


@dataclass(frozen=True)
class Convolution:
    """A convolution of a subject.

    input, weight, bias        Python expressions; "None" without bias
    lengths, kernel            spatial lengths of input and weight
    stride, padding, dilation  one number for each spatial dimension; a padding may be "same"
    channels, filters          of the input and of the output
    """

    rank: int
    input: str
    weight: str
    bias: str
    batch: tuple[int, ...]
    lengths: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...] | str
    dilation: tuple[int, ...]
    groups: int
    channels: int
    filters: int

    @property
    def spans(self) -> tuple[int, ...]:
        """The input's elements from the first to the last tap of the kernel: d·(k-1) + 1."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))


def read(subject: Subject) -> Convolution | None:
    """The convolution that a subject is; None if it is none of those that the rules are about."""
    if subject.api in FUNCTIONS:
        given = subject.bind(_CALL)
        return None if given is None else _read_function(subject, FUNCTIONS[subject.api], given)
    if subject.api in MODULES:
        return _read_module(subject, MODULES[subject.api])
    return None


def _read_function(subject: Subject, rank: int, given: Mapping[str, Argument]) -> Convolution | None:
    bias = given.get("bias")
    weight, data = given.get("weight"), given.get("input")
    if not isinstance(weight, TensorArg) or not isinstance(data, TensorArg):
        return None
    return _convolution(
        subject, rank, given, subject.shape(weight),
        (data.name, weight.name, bias.name if isinstance(bias, TensorArg) else "None"), subject.shape(data),
    )  # fmt: skip


def _read_module(subject: Subject, rank: int) -> Convolution | None:
    init = subject.call.init
    if init is None or init.args or not set(dict(init.kwargs)) <= set(_INIT) or len(subject.names) != 1:
        return None
    given = dict(init.kwargs)
    groups = given.get("groups", 1)
    kernel = _each(given["kernel_size"], rank)
    shape = (given["out_channels"], given["in_channels"] // groups, *kernel)
    bias = "self.layer.bias" if given.get("bias", True) else "None"
    name = subject.names[0]
    return _convolution(
        subject, rank, given, shape, (name, "self.layer.weight", bias), subject.tensors[name].shape
    )


def _convolution(
    subject: Subject,
    rank: int,
    given: Mapping[str, Any],
    weight: Sequence[int],
    expressions: tuple[str, str, str],
    shape: Sequence[int],
) -> Convolution | None:
    del subject
    if len(shape) not in (rank + 1, rank + 2) or len(weight) != rank + 2:
        return None
    padding = given.get("padding", 0)
    groups = given.get("groups", 1)
    return Convolution(
        rank,
        *expressions,
        batch=tuple(shape[: -rank - 1]),
        lengths=tuple(shape[-rank:]),
        kernel=tuple(weight[2:]),
        stride=_each(given.get("stride", 1), rank),
        padding=padding if padding == "same" else _each(0 if padding == "valid" else padding, rank),
        dilation=_each(given.get("dilation", 1), rank),
        groups=groups,
        channels=shape[-rank - 1],
        filters=weight[0],
    )


def _each(value: Any, rank: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * rank
    return tuple(value) * (rank if len(value) == 1 else 1)


def function(rank: int) -> str:
    """The function of a convolution of so many dimensions."""
    return f"torch.nn.functional.conv{rank}d"


def draw(api: str, rng: Rng, fixed: Mapping[str, Any] | None = None, depthwise: bool = False) -> TestCase:
    """A convolution with random lengths and settings, but for what is `fixed`."""
    rank = FUNCTIONS.get(api) or MODULES[api]
    groups = rng.between(1, 3)
    per_group = 1 if depthwise else rng.between(1, 3)
    channels, filters = groups * per_group, groups * rng.between(1, 3)
    kernel = draws.lengths(rng, rank, 1, 3)
    settings = {
        "stride": draws.lengths(rng, rank, 1, 3),
        "padding": draws.lengths(rng, rank, 0, 2),
        "dilation": draws.lengths(rng, rank, 1, 3),
        **(fixed or {}),
        "groups": groups,
    }
    shape = (rng.between(1, 3), channels, *(rng.between(7, 12) for _ in range(rank)))
    has_bias = rng.chance(0.5)
    data = {"input": draws.uniform(rng, shape)}
    if api in MODULES:
        init = {"in_channels": channels, "out_channels": filters, "kernel_size": kernel, "bias": has_bias}
        return draws.call_case(api, data, init=init | settings, seed=rng.seed())
    data["weight"] = draws.uniform(rng, (filters, per_group, *kernel))
    if has_bias:
        data["bias"] = draws.uniform(rng, (filters,))
    return draws.call_case(api, data, settings)
