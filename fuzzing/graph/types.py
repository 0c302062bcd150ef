"""Edge types: an element type and a shape."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
BOOL = ("bool",)
ANY = NUMBERS + BOOL

#: None for a data-dependent length.
Dim: TypeAlias = int | None
Shape: TypeAlias = tuple[Dim, ...]


class UnknownShapeError(ValueError):
    """Raised for lengths that only the data determine."""


class TensorType(NamedTuple):
    """The type of an edge.

    dtype  an ONNX element type as in `fuzzing.cases.values`; for an edge that is not a tensor its type in
           ONNX's textual syntax, such as `seq(float[2,?])`, with `shape` None
    shape  its lengths; None if the rank is unknown
    """

    dtype: str
    shape: Shape | None

    @property
    def rank(self) -> int:
        """The number of dimensions; -1 if unknown."""
        return -1 if self.shape is None else len(self.shape)

    @property
    def static(self) -> bool:
        """Whether every length is known."""
        return self.shape is not None and None not in self.shape

    @property
    def elements(self) -> int:
        """The number of elements of a static type."""
        return math.prod(self.lengths)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The shape of a static type; UnknownShapeError for any other."""
        if self.shape is None or None in self.shape:
            raise UnknownShapeError(f"{self} has no static shape")
        return self.shape  # type: ignore[return-value]

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[…]"
        return f"{self.dtype}[{','.join('?' if dim is None else str(dim) for dim in self.shape)}]"


#: An optional output that its node leaves out though a later one is given: the edge keeps the place, and
#: nothing may use it.
ABSENT = TensorType("", None)

#: An edge of which nothing is known, as an operator of a foreign domain gives it.
UNKNOWN = TensorType("?", None)
