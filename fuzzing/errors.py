"""Every error that `fuzzing` raises on purpose.

    FuzzingError
    ├── UsageError            the caller's mistake; the message says how to mend it (exit code 2)
    │   ├── CaseFormatError   a stored case is truncated, too large, or not what it claims to be
    │   ├── UnknownNameError  no backend, source or profile of that name
    │   ├── UnreadableError   a model that cannot be read into a graph
    │   ├── UnwritableError   a graph that a format cannot hold
    │   └── IllTypedError     a graph whose operators do not take their inputs
    ├── RefusalError          a platform said no (a quota, a permission, a licence)
    ├── InfrastructureError   the machine failed us; says nothing about a compiler (exit code 3)
    │   └── ToolchainError    the toolchain's interpreter or compiler cannot be started
    └── InternalError         a bug of ours; never caught, always shown

Anything else that escapes is also our bug and is left to escape.
"""

from __future__ import annotations


class FuzzingError(Exception):
    """Base of the tree above."""


class UsageError(FuzzingError):
    """The caller's mistake; the message says how to mend it."""


class CaseFormatError(UsageError):
    """A stored case is truncated, too large, or not what it claims to be."""


class UnknownNameError(UsageError):
    """No backend, source or profile of that name is registered."""


class UnreadableError(UsageError):
    """A model cannot be read into a graph; the message says what of it cannot."""


class UnwritableError(UsageError):
    """A graph has no form in a format; the message says what of it has none."""


class IllTypedError(UsageError):
    """A graph's operators do not take the inputs they are given; the message says which."""


class RefusalError(FuzzingError):
    """A platform said no: a quota, a permission, a licence."""


class InfrastructureError(FuzzingError):
    """The machine failed us; nothing is said about any compiler."""


class ToolchainError(InfrastructureError):
    """A toolchain's interpreter or compiler cannot be started."""


class InternalError(FuzzingError):
    """An invariant of ours does not hold: a bug of Assay."""
