"""The tree of errors of Assay. Its four kinds are by who must act:

    AssayError
    ├── UsageError            the caller's mistake; the message explains the fix
    │   ├── CaseFormatError   a stored case is truncated, too large or malformed
    │   ├── UnknownNameError  no backend, source or profile of that name
    │   ├── UnreadableError   a model that cannot be read into a graph
    │   ├── UnwritableError   a graph that a format cannot hold
    │   └── IllTypedError     a graph whose operators do not accept their inputs
    ├── RefusalError          a platform refused: a quota, a permission, a licence, a repository
    ├── InfrastructureError   the machine failed; no statement about a compiler
    │   └── ToolchainError    the toolchain's interpreter or compiler cannot be started
    └── InternalError         a bug of Assay; logged with its traceback, never handled

Any other exception that escapes is also a bug of Assay. `bot.errors` adds the control plane's leaves.
`exit_code` maps the kinds to exit codes, for `assay` and for the programs of the data plane.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class AssayError(Exception):
    """Base of the tree above."""


class UsageError(AssayError):
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


class RefusalError(AssayError):
    """A platform refused: a quota, a permission, a licence, a repository that is gone."""


class InfrastructureError(AssayError):
    """The machine failed; no statement about any compiler. `transient`: a retry may succeed."""

    transient: ClassVar[bool] = True


class ToolchainError(InfrastructureError):
    """A toolchain's interpreter or compiler cannot be started."""


class InternalError(AssayError):
    """An invariant does not hold: a bug of Assay."""


class Exit(IntEnum):
    """The exit codes."""

    OK = 0
    FOUND = 1  # a regression, a case that fails, no compiler to test
    USAGE = 2
    INFRASTRUCTURE = 3  # a machine or a platform failed


#: Errors that a program reports in a line and an exit code; all others are bugs of Assay.
EXPECTED_ERRORS = (UsageError, RefusalError, InfrastructureError)


def exit_code(error: BaseException) -> Exit | None:
    """The exit code of an error; None for bugs of Assay."""
    if isinstance(error, UsageError):
        return Exit.USAGE
    return Exit.INFRASTRUCTURE if isinstance(error, EXPECTED_ERRORS) else None
