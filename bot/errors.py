"""The errors of `bot`: the four kinds of `fuzzing.errors`, and the control plane's leaves.

AssayError
├── UsageError             a mistake of the operator or a maintainer; the message says how to fix it
│   ├── SettingsError      ASSAY_* variables or the settings file
│   ├── ConfigError        `.github/assay.yml`; has line and key
│   └── DeliveryError      a webhook delivery that is rejected; has an HTTP status
├── RefusalError           GitHub refused: a permission, a limit, a repository
├── InfrastructureError    our machines failed; says nothing about a compiler
│   ├── ProvisionError     a toolchain cannot be made; says what to fix
│   │   ├── BrokenSourcesError   with a commit's sources the compiler cannot be used
│   │   ├── CheckUnfinishedError   a compiler's import took too long or was killed
│   │   ├── BuildFailedError     a commit's own build fails; says nothing about its compiler
│   │   └── BuildPendingError    a build of a commit is not there yet
│   ├── RunnerError        a shard could not run
│   │   └── RunnerLostError      its machine is gone; another one may run it
│   └── ToolchainError     the toolchain of a shard does not start
└── InternalError          a bug of Assay; logged with its traceback
"""

from __future__ import annotations

from typing import ClassVar

from fuzzing.errors import EXPECTED_ERRORS as EXPECTED_ERRORS
from fuzzing.errors import AssayError as AssayError
from fuzzing.errors import InfrastructureError as InfrastructureError
from fuzzing.errors import InternalError as InternalError
from fuzzing.errors import RefusalError as RefusalError
from fuzzing.errors import ToolchainError as ToolchainError
from fuzzing.errors import UsageError as UsageError


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


class ProvisionError(InfrastructureError):
    """A toolchain cannot be made; the message says what to fix. A retry would fail again.

    causes  of several toolchains that were tried, why each cannot be made
    """

    transient: ClassVar[bool] = False
    causes: tuple[ProvisionError, ...] = ()


class BrokenSourcesError(ProvisionError):
    """The wheel works, and with the commit's sources over it the compiler cannot be imported or used."""


class CheckUnfinishedError(ProvisionError):
    """The import of a compiler, or its smoke test, took too long or was killed: perhaps the machine's fault,
    not the commit's.
    """

    transient: ClassVar[bool] = True


class BuildFailedError(ProvisionError):
    """The build that a commit declares fails, here or in its own CI; the message ends with its last lines."""


class BuildPendingError(ProvisionError):
    """The commit's CI has not built it yet: to be asked again after `wait_s` seconds."""

    transient: ClassVar[bool] = True

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class RunnerError(InfrastructureError):
    """A shard could not be executed."""


class RunnerLostError(RunnerError):
    """The machine that ran a shard is gone. Says nothing about the cases or the compiler."""
