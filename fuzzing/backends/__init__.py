"""Backends: one small file for each compiler."""

from fuzzing.backends.base import Backend, Pattern, Unsupported, compilers, get, names, register

__all__ = ["Backend", "Pattern", "Unsupported", "compilers", "get", "names", "register"]
