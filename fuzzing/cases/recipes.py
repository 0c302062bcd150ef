"""Seeded recipes: inputs given by their distribution and seed instead of their bytes.

A recipe must give the same bytes with every numpy on every machine. numpy freezes the streams of its bit
generators but not its distributions (NEP 19), so a recipe takes raw 64-bit words from PCG64 and converts them
by exact arithmetic only.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzzing.cases.values import CARRIERS, RAW_DTYPES, STRING, Tensor, element_count
from fuzzing.errors import CaseFormatError

KINDS = ("uniform", "normal", "integers", "constant")
_EXACT = 1 << 53  # float64 holds every integer up to here
_TERMS = 12  # Irwin-Hall: twelve uniforms sum to variance 1, without libm's log and cos


@dataclass(frozen=True)
class Recipe:
    """A tensor to be drawn.

    kind   uniform: floats in [low, high), before rounding to `dtype`; normal: mean `low`, deviation `high` (a
           sum of twelve uniforms, so values are within six deviations); integers: in [low, high]; constant:
           `low` everywhere
    dtype  an ONNX element type with a numpy counterpart
    seed   of numpy's PCG64, 0 ≤ seed < 2**64
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low))  # 0 and 0.0 must give one case id
        object.__setattr__(self, "high", float(self.high))
        if self.kind not in KINDS:
            raise CaseFormatError(f"unknown recipe {self.kind!r}; there are {', '.join(KINDS)}")
        if self.dtype == STRING or self.dtype not in CARRIERS or self.dtype in RAW_DTYPES:
            raise CaseFormatError(f"a recipe cannot draw {self.dtype!r}")
        element_count(self.shape)
        self._check_bounds()
        if not 0 <= self.seed < 1 << 64:
            raise CaseFormatError("a recipe's seed must lie in 0..2**64-1")

    def _check_bounds(self) -> None:
        """Rejects bounds whose conversion by numpy is undefined behavior and so not portable."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and math.isfinite(self.high - self.low)):
            raise CaseFormatError("a recipe's bounds, and their distance, must be finite")
        if self.kind in ("uniform", "integers") and self.low > self.high:
            raise CaseFormatError(f"nothing lies between {self.low} and {self.high}")
        if self.kind == "integers":
            _check_whole(self.low, -_EXACT, _EXACT)
            _check_whole(self.high, -_EXACT, _EXACT)
            if self.high - self.low >= _EXACT:
                raise CaseFormatError("integers are drawn from fewer than 2**53 candidates")
        self._check_range(np.dtype(CARRIERS[self.dtype]))

    def _check_range(self, carrier: np.dtype[Any]) -> None:
        """Floats may overflow to infinities; integers and bools must hold every drawn value."""
        if carrier.kind not in "biu":
            return
        if self.kind in ("uniform", "normal"):
            raise CaseFormatError(f"{self.dtype} cannot hold what {self.kind!r} draws; use integers")
        least, most = (0, 1) if carrier.kind == "b" else (np.iinfo(carrier).min, np.iinfo(carrier).max)
        for bound in (self.low,) if self.kind == "constant" else (self.low, self.high):
            _check_whole(bound, max(int(least), -_EXACT), min(int(most), _EXACT))

    def draw(self) -> Tensor:
        """The tensor; the same bytes each time, on every machine."""
        count = element_count(self.shape)
        flat = self._draw_flat(count)
        with np.errstate(over="ignore", invalid="ignore"):
            array = flat.astype(np.dtype(CARRIERS[self.dtype])).reshape(self.shape)
        return Tensor.of(array, self.dtype)

    def _draw_flat(self, count: int) -> np.ndarray[Any, Any]:
        if self.kind == "constant":
            return np.full(count, self.low)
        words = np.random.PCG64(self.seed)
        if self.kind == "normal":
            unit = _unit(words, count * _TERMS).reshape(count, _TERMS)
            total = unit[:, 0].copy()
            for term in range(1, _TERMS):  # a fixed order: numpy's sum may regroup
                total += unit[:, term]
            return self.low + self.high * (total - _TERMS / 2)
        unit = _unit(words, count)
        if self.kind == "integers":
            low, high = int(self.low), int(self.high)
            drawn: np.ndarray[Any, Any] = np.floor(unit * (high - low + 1)) + low
            return drawn.astype(np.int64)
        return self.low + unit * (self.high - self.low)

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON."""
        return {
            "recipe": self.kind,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "low": self.low,
            "high": self.high,
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Recipe:
        """The inverse of `to_json`; raises CaseFormatError for anything else."""
        if obj.keys() != {"recipe", "dtype", "shape", "low", "high", "seed"}:
            raise CaseFormatError(f"a recipe cannot have the keys {sorted(map(str, obj))}")
        shape, low, high, seed = obj["shape"], obj["low"], obj["high"], obj["seed"]
        if not isinstance(shape, list) or not all(type(dim) is int for dim in shape):
            raise CaseFormatError(f"a shape must be a list of integers, not {shape!r}")
        if not all(type(bound) in (int, float) for bound in (low, high)) or type(seed) is not int:
            raise CaseFormatError("a recipe's bounds must be numbers and its seed an integer")
        if not all(abs(bound) <= sys.float_info.max for bound in (low, high)):
            raise CaseFormatError("a recipe's bounds must be finite")
        if not isinstance(obj["recipe"], str) or not isinstance(obj["dtype"], str):
            raise CaseFormatError("a recipe's kind and dtype must be strings")
        return cls(obj["recipe"], obj["dtype"], tuple(shape), float(low), float(high), seed)


def _unit(words: np.random.PCG64, count: int) -> np.ndarray[Any, Any]:
    """`count` floats in [0, 1): the top 53 bits of each word, as exact multiples of 2**-53."""
    raw = np.asarray(words.random_raw(count), np.uint64)
    unit: np.ndarray[Any, Any] = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return unit


def _check_whole(bound: float, least: int, most: int) -> None:
    if not bound.is_integer() or not least <= bound <= most:
        raise CaseFormatError(f"a bound must be a whole number in [{least}, {most}], not {bound}")
