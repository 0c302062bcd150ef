"""All exceptions that `fuzzing` raises on purpose.

    FuzzingError
    ├── UsageError            the caller's mistake; the message explains the fix (exit code 2)
    │   ├── CaseFormatError   a stored case is truncated, too large or malformed
    │   ├── UnknownNameError  no backend, source or profile of that name
    │   ├── UnreadableError   a model that cannot be read into a graph
    │   ├── UnwritableError   a graph that a format cannot hold
    │   └── IllTypedError     a graph whose operators do not accept their inputs
    ├── RefusalError          a platform refused: a quota, a permission, a licence
    ├── InfrastructureError   the machine failed; no statement about a compiler (exit code 3)
    │   └── ToolchainError    the toolchain's interpreter or compiler cannot be started
    └── InternalError         a bug in Assay; never caught

Any other exception that escapes is also a bug in Assay.
"""

from __future__ import annotations


class FuzzingError(Exception):
    """Base class of all exceptions above."""


class UsageError(FuzzingError):
    """The caller's mistake; the message explains the fix."""


class CaseFormatError(UsageError):
    """A stored case is truncated, too large or malformed."""


class UnknownNameError(UsageError):
    """No backend, source or profile of that name is registered."""


class UnreadableError(UsageError):
    """A model cannot be read into a graph; the message names the part."""


class UnwritableError(UsageError):
    """A graph cannot be written in a format; the message names the part."""


class IllTypedError(UsageError):
    """A graph's operators do not accept their inputs; the message names them."""


class RefusalError(FuzzingError):
    """A platform refused: a quota, a permission, a licence."""


class InfrastructureError(FuzzingError):
    """The machine failed; no statement about any compiler."""


class ToolchainError(InfrastructureError):
    """A toolchain's interpreter or compiler cannot be started."""


class InternalError(FuzzingError):
    """An invariant does not hold: a bug in Assay."""
