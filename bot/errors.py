"""Every error that `bot` raises on purpose.

    AssayError
    ├── UsageError             the operator's or a maintainer's mistake; the message says how to mend it
    │   ├── SettingsError      ASSAY_* variables or the settings file
    │   ├── ConfigError        a repository's `.github/assay.yml`; knows line and key
    │   └── DeliveryError      a webhook delivery that cannot be accepted; knows its HTTP status
    ├── RefusalError           a platform said no: GitHub refused a permission, a limit, a repository
    ├── InfrastructureError    our machines failed; nothing is said about a compiler
    │   ├── ProvisionError     a toolchain cannot be made; says what to fix
    │   └── RunnerError        a shard could not be executed
    └── InternalError          a bug of ours; never caught, always logged with its traceback

`fuzzing.errors` has the same four classes for the data plane; `bot.cli` maps both trees to exit codes.
"""

from __future__ import annotations

from typing import ClassVar


class AssayError(Exception):
    """Base of the tree above."""


class UsageError(AssayError):
    """The operator's or a maintainer's mistake; the message says how to mend it."""


class SettingsError(UsageError):
    """A setting is missing or wrong."""


class ConfigError(UsageError):
    """A repository's configuration is wrong.

    line, column are 1-based, 0 where unknown; key is the dotted path, "" for the whole file.
    """

    def __init__(self, message: str, *, key: str = "", line: int = 0, column: int = 0) -> None:
        where = f"line {line}: " if line else ""
        super().__init__(f"{where}{key + ': ' if key else ''}{message}")
        self.key, self.line, self.column = key, line, column


class DeliveryError(UsageError):
    """A webhook delivery that cannot be accepted; `status` is the HTTP answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RefusalError(AssayError):
    """A platform said no: a permission, a limit, a repository that is gone."""


class InfrastructureError(AssayError):
    """Our machines failed; nothing is said about a compiler. `transient`: it may work if tried again."""

    transient: ClassVar[bool] = True


class ProvisionError(InfrastructureError):
    """A toolchain cannot be made; the message says what to fix. Trying again would not."""

    transient: ClassVar[bool] = False


class RunnerError(InfrastructureError):
    """A shard could not be executed."""


class InternalError(AssayError):
    """An invariant of ours does not hold: a bug of Assay."""
