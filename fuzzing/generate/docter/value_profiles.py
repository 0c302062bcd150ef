"""Ranges of values where constraints leave them open.

`paper` has DocTer's own constants: ranks to 5, lengths 0..20, values from the whole range of the type. Sums
of such values overflow and sizes exhaust memory, so the default is `tame`: values that people write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuzzing.errors import UnknownNameError

#: Types of the torch pool in DocTer's released code, without strings, which torch has no tensors of.
POOL = ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
#: An open bound is moved by this much for floats, by 1 for whole numbers (DocTer's fuzzer).
EPSILON = 1e-8
FLOAT_MAX: Mapping[str, float] = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
    "complex64": 3.4028234663852886e38,
    "complex128": 1.7976931348623157e308,
}
INT_RANGE: Mapping[str, tuple[int, int]] = {
    "bool": (0, 1), "uint8": (0, 255), "int8": (-128, 127), "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 52), (1 << 52) - 1),
}  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """Ranges of unconstrained values.

    max_rank, lengths   of tensors; `special` has other lengths for symbols of documented shapes
    dtypes              with their weights
    floats, integers    bounds of values; None for the type's whole range (float64's halved, so that the
                        distance of its bounds is finite; int64's to 2**52, which a recipe holds)
    span                how far above its lower bound a count goes
    items               the most items of a list of unknown length
    strings             whether texts of unknown meaning are drawn
    """

    name: str
    max_rank: int
    lengths: tuple[int, int]
    dtypes: Mapping[str, int]
    floats: tuple[float, float] | None
    integers: tuple[int, int] | None
    span: int
    items: int
    strings: bool
    special: tuple[tuple[str, tuple[int, int]], ...] = field(default=())


PAPER = Profile(
    name="paper",
    max_rank=5,
    lengths=(0, 20),
    dtypes=dict.fromkeys(POOL, 1),
    floats=None,
    integers=None,
    span=(1 << 31) - 1,
    items=20,
    strings=True,
)
#: float32 in two cases of three: it is what compilers are made for, and each other type is still met.
TAME = Profile(
    name="tame",
    max_rank=4,
    lengths=(1, 6),
    dtypes={
        "float32": 20,
        "float64": 3,
        "float16": 1,
        "int64": 3,
        "int32": 1,
        "int16": 1,
        "int8": 1,
        "uint8": 1,
        "bool": 1,
    },
    floats=(-4.0, 4.0),
    integers=(-8, 8),
    span=4,
    items=4,
    strings=False,
    special=((r"k[A-Z]|kernel_width", (1, 3)), (r"(i[HWT]|[HWLDT]_in|[HWLDT])", (4, 10))),
)
_PROFILES = {profile.name: profile for profile in (TAME, PAPER)}


def get(name: str) -> Profile:
    """The profile `name`; raises UnknownNameError that lists the known ones."""
    if name not in _PROFILES:
        raise UnknownNameError(f"no profile is called {name!r}; there are: {', '.join(_PROFILES)}")
    return _PROFILES[name]
