"""Every error that `bot` raises on purpose.

    AssayError
    ├── UsageError             a mistake of the operator or a maintainer; the message says how to fix it
    │   ├── SettingsError      ASSAY_* variables or the settings file
    │   ├── ConfigError        `.github/assay.yml`; has line and key
    │   └── DeliveryError      a webhook delivery that is rejected; has an HTTP status
    ├── RefusalError           GitHub refused: a permission, a limit, a repository
    ├── InfrastructureError    our machines failed; says nothing about a compiler
    │   ├── ProvisionError     a toolchain cannot be made; says what to fix
    │   └── RunnerError        a shard could not run
    └── InternalError          a bug of Assay; logged with its traceback

`fuzzing.errors` has the same four classes for the data plane; `bot.cli` maps both trees to exit codes.
"""

from __future__ import annotations

from typing import ClassVar


class AssayError(Exception):
    """Base of the tree above."""


class UsageError(AssayError):
    """A mistake of the operator or a maintainer; the message says how to fix it."""


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
    """GitHub refused: a permission, a limit, a repository that is gone."""


class InfrastructureError(AssayError):
    """Our machines failed. `transient`: a retry may succeed."""

    transient: ClassVar[bool] = True


class ProvisionError(InfrastructureError):
    """A toolchain cannot be made; the message says what to fix. A retry would fail again."""

    transient: ClassVar[bool] = False


class RunnerError(InfrastructureError):
    """A shard could not be executed."""


class InternalError(AssayError):
    """A violated invariant: a bug of Assay."""
