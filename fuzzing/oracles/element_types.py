"""Decodes element types that numpy lacks, with numpy alone, and orders all floats.

Layouts are those of the ONNX standard (docs/docsgen/source/technical/float8.md, float4.md, int4.md) and of
the OCP Microscaling specification for e8m0 and e2m1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fuzzing.cases.values import RAW_DTYPES

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Layout:
    """A small float: sign bit, exponent, mantissa, and its special codes.

    nan  codes, without the sign bit, that are NaN; inf likewise
    uz   "unsigned zero": the code of -0 is the one NaN
    """

    exponent: int
    mantissa: int
    bias: int
    nan: tuple[int, ...] = ()
    inf: tuple[int, ...] = ()
    uz: bool = False


_LAYOUTS = {
    "float8_e4m3fn": _Layout(4, 3, 7, nan=(0x7F,)),
    "float8_e4m3fnuz": _Layout(4, 3, 8, uz=True),
    "float8_e5m2": _Layout(5, 2, 15, nan=(0x7D, 0x7E, 0x7F), inf=(0x7C,)),
    "float8_e5m2fnuz": _Layout(5, 2, 16, uz=True),
    "float4_e2m1fn": _Layout(2, 1, 1),
}
_INTEGER_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def decode(dtype: str, raw: Array) -> Array:
    """The numbers in an array of `dtype`'s carrier; the array itself if the carrier is not raw."""
    if dtype not in RAW_DTYPES:
        return raw
    if dtype == "bfloat16":  # the upper half of a float32
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return _values(dtype)[raw]


#: Of each float type: one rounding, relative to the value rounded (half the distance of 1 to its neighbor,
#: IEEE 754's unit roundoff), and the smallest number above 0.
ROUNDING = {
    "float16": (2.0**-11, 2.0**-24),
    "bfloat16": (2.0**-8, 2.0**-133),
    "float32": (2.0**-24, 2.0**-149),
    "float64": (2.0**-53, 2.0**-1074),
    "complex64": (2.0**-24, 2.0**-149),
    "complex128": (2.0**-53, 2.0**-1074),
}


def ulp_ranks(dtype: str, raw: Array) -> Array:
    """Rank of each element in the order of its float type, as int64: neighbors differ by one.

    Both zeros have rank 0. Ranks of NaN and infinities have no meaning. Complex types have no order: use
    their parts.
    """
    if dtype in ROUNDING:
        bits = raw.dtype.itemsize * 8
        code = raw.view(f"i{raw.dtype.itemsize}").astype(np.int64)
        magnitude = code & ((1 << (bits - 1)) - 1)
        ranked: Array = np.where(code < 0, -magnitude, magnitude)
        return ranked
    return _small_ulp_ranks(dtype)[raw]


def is_float(dtype: str) -> bool:
    """Whether a type holds floats, real or complex."""
    return dtype in ROUNDING or dtype in _LAYOUTS or dtype == "float8_e8m0fnu"


@cache
def _values(dtype: str) -> Array:
    if dtype in _INTEGER_BITS:
        return _integers(_INTEGER_BITS[dtype], signed=dtype.startswith("int"))
    if dtype == "float8_e8m0fnu":  # an exponent only; the last code is NaN
        table = np.ldexp(1.0, np.arange(256) - 127)
        table[0xFF] = np.nan
        return table
    return _floats(_LAYOUTS[dtype])


@cache
def _small_ulp_ranks(dtype: str) -> Array:
    codes = np.arange(256, dtype=np.int64)
    if dtype == "float8_e8m0fnu":
        return codes
    layout = _LAYOUTS[dtype]
    sign = 1 << (layout.exponent + layout.mantissa)
    magnitude = codes & (sign - 1)
    return np.where(codes & sign, -magnitude, magnitude)


def _integers(bits: int, *, signed: bool) -> Array:
    """Integers of the low bits: some libraries extend the sign over the byte, some do not."""
    codes = np.arange(256, dtype=np.int64) & ((1 << bits) - 1)
    return np.where(codes >> (bits - 1), codes - (1 << bits), codes) if signed else codes


def _floats(layout: _Layout) -> Array:
    codes = np.arange(256, dtype=np.int64)
    sign_bit = 1 << (layout.exponent + layout.mantissa)
    magnitude = codes & (sign_bit - 1)
    exponent = magnitude >> layout.mantissa
    fraction = magnitude & ((1 << layout.mantissa) - 1)
    normal = np.ldexp(1.0 + fraction / (1 << layout.mantissa), exponent - layout.bias)
    subnormal = np.ldexp(fraction / (1 << layout.mantissa), 1 - layout.bias)
    table: Array = np.where(exponent > 0, normal, subnormal)
    table[np.isin(magnitude, layout.inf)] = np.inf
    table[np.isin(magnitude, layout.nan)] = np.nan
    table = np.where(codes & sign_bit, -table, table)
    if layout.uz:
        table[sign_bit] = np.nan
    return table
