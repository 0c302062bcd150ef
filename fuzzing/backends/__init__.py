"""Backends: one file or folder for each compiler."""

from fuzzing.backends.base import (
    AblationLevel,
    Backend,
    Named,
    Unsupported,
    UnsupportedPattern,
    compilers,
    get,
    names,
    reference_backend,
    reference_packages,
    register,
)

__all__ = [
    "AblationLevel",
    "Backend",
    "Named",
    "Unsupported",
    "UnsupportedPattern",
    "compilers",
    "get",
    "names",
    "reference_backend",
    "reference_packages",
    "register",
]
