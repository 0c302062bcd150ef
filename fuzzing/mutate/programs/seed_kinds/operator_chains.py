"""Seeds from torch's database of operators: samples chained together.

A tensor of a sample is replaced by a variable of its shape and type, or by a part of a larger variable; its
other arguments stay. Zero-size, 0-d, high-rank and complex tensors come with the samples.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import torch

from fuzzing.mutate.programs.seeds import REFUSALS, Seed, register_seed_kind
from fuzzing.mutate.programs.straight_line import StraightLine
from fuzzing.rng import Rng
from fuzzing.torch_api.samples import BrokenSample, enumerate_samples, load_table, seed_samples

#: Calls of a seed, as many as operators of a graph.
_CALLS = (3, 9)
#: Draws of a call until one fits.
_DRAWS = 24
#: Samples of one operator and type that are made, which takes most of the first programs' time.
_SAMPLES = 8
_DTYPES = ("float32",) * 5 + ("float64", "complex64", "int64")
#: How often a tensor without an equal variable is cut from another, rather than a new input.
_CUT = 0.8
#: What jumps, so that a last bit becomes another result; decompositions that are unique up to a sign; what
#: takes a seed's values where nothing is computed from them.
LEFT_OUT = re.compile(
    r".*(svd|eig|qr(?!t)|cholesky|lstsq|pinv|(?<!re)solve|inv|det(?!ach)|rank(?!ing)|matrix_exp|cond|householder|norm_fro|pca).*"
    r"|.*(sort|topk|kthvalue|median|mode|unique|argm|argw|round|floor|ceil|trunc|frac|sign(?!al)|heaviside|remainder|fmod"
    r"|isclose|allclose|hist|bucketize|searchsorted|nextafter|hash_tensor|one_hot|sparse|nonzero|quantile).*"
    r"|.*(rand|dropout|bernoulli|multinomial|normal(?!ize)|empty|igamma|polygamma|zeta|spherical|bessel|polynomial).*"
    r"|(.*\.)?lu(_.*)?"
    r"|(eq|ne|ge|le|equal|tan|cdist|resize.*|set_|item|tensor_split|narrow_copy|as_strided.*|cauchy)"
    r"|_?native_batch_norm.*"  # eager torch does not check that its statistics have a number for each channel
    r"|_unsafe_.*"  # indices are not checked: eager torch clamps one beyond the end, inductor reads there
)


@dataclass(frozen=True)
class _Sample:
    """A call.

    template  its text, with $0, $1, … for the tensors
    """

    template: str
    tensors: tuple[torch.Tensor, ...]

    def write(self, names: Mapping[int, str]) -> str:
        """The call of these variables."""
        return re.sub(r"\$(\d+)", lambda found: names[int(found[1])], self.template)


@register_seed_kind("operator-chains")
def make_chain(seed: int) -> Seed | None:
    """A chain of samples of one element type; None if no call fits."""
    rng, program = Rng(seed), StraightLine()
    dtype = rng.choice(_DTYPES)
    for _ in range(rng.between(*_CALLS)):
        for _ in range(_DRAWS):
            found = _samples(rng.below(len(_operators())), dtype)
            if found and _add_call(program, rng.choice(found), rng):
                break
    return program.finish() if len(program) > 1 else None


def _add_call(program: StraightLine, sample: _Sample, rng: Rng) -> bool:
    names = {place: _choose(program, tensor, rng) for place, tensor in enumerate(sample.tensors)}
    if len(program) and not any(name in program.values for name in names.values() if name):
        return False
    try:
        written = {
            place: name if name is not None else program.add_input(sample.tensors[place])
            for place, name in names.items()
        }
        expressions = {
            place: name if name in program.values else program.add(name) for place, name in written.items()
        }
        if None in expressions.values():
            return False
        return (
            program.add(sample.write({place: str(name) for place, name in expressions.items()})) is not None
        )
    except REFUSALS:
        return False


def _choose(program: StraightLine, tensor: torch.Tensor, rng: Rng) -> str | None:
    """An expression of a tensor's shape and type from the program's variables; None for a new input."""
    alike = [name for name, value in program.values.items() if value.dtype == tensor.dtype]
    equal = [name for name in alike if program.values[name].shape == tensor.shape]
    if equal:
        return rng.choice(equal)
    larger = [name for name in alike if program.values[name].numel() >= tensor.numel() > 0]
    if larger and rng.chance(_CUT):
        return f"{rng.choice(larger)}.reshape(-1)[:{tensor.numel()}].reshape({tuple(tensor.shape)})"
    return None


@cache
def _operators() -> tuple[tuple[str, Any], ...]:
    """The operators that are functions of torch under their own name."""
    found = []
    for entry in load_table("torchprobe", "common_methods_invocations", "op_db"):
        name = f"torch.{entry.name}"
        if not LEFT_OUT.fullmatch(entry.name) and _resolve(name) is entry.op:
            found.append((name, entry))
    return tuple(found)


def _resolve(name: str) -> Any:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


@cache
def _samples(place: int, dtype: str) -> tuple[_Sample, ...]:
    name, entry = _operators()[place]
    wanted = getattr(torch, dtype)
    if wanted not in entry.supported_dtypes("cpu"):
        return ()
    drawn = seed_samples(lambda: entry.sample_inputs("cpu", wanted, requires_grad=False))
    with contextlib.closing(drawn):  # else the generator's changes to torch outlast it
        made = [
            _write(name, one)
            for _, one in islice(enumerate_samples(drawn), _SAMPLES)
            if not isinstance(one, BrokenSample)
        ]
    return tuple(one for one in made if one is not None)


def _write(name: str, sample: Any) -> _Sample | None:
    """The sample as text; None if an argument has no text."""
    tensors: list[torch.Tensor] = []
    try:
        given = [_format(one, tensors) for one in (sample.input, *sample.args)]
        given += [f"{key}={_format(one, tensors)}" for key, one in sample.kwargs.items()]
    except TypeError:
        return None
    return _Sample(f"{name}({', '.join(given)})", tuple(tensors)) if tensors else None


def _format(value: Any, tensors: list[torch.Tensor]) -> str:
    """An argument as text; raises TypeError for one that has none."""
    if type(value) is torch.Tensor and value.layout == torch.strided:
        tensors.append(value)
        return f"${len(tensors) - 1}"
    if value is None or isinstance(value, (bool, int, str, torch.dtype)) or _is_finite(value):
        return repr(value)
    inside: dict[type, Callable[[str], str]] = {
        tuple: lambda text: f"({text}{',' * bool(text)})",
        list: lambda text: f"[{text}]",
        torch.Size: lambda text: f"({text}{',' * bool(text)})",
    }
    if type(value) in inside:
        return inside[type(value)](", ".join(_format(item, tensors) for item in value))
    raise TypeError(type(value))


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and abs(value) < float("inf")
