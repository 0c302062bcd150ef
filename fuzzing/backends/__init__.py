"""Backends: one small file for each compiler."""

from fuzzing.backends.base import (
    Backend,
    Named,
    Pattern,
    Rung,
    Unsupported,
    compilers,
    get,
    names,
    reference_of,
    register,
)

__all__ = [
    "Backend",
    "Named",
    "Pattern",
    "Rung",
    "Unsupported",
    "compilers",
    "get",
    "names",
    "reference_of",
    "register",
]
