"""The sandbox levels that this machine supports for foreign code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bot import processes
from bot.errors import InfrastructureError
from fuzzing.execute.sandbox.cgroup import delegated_group
from fuzzing.execute.sandbox.isolation import LEVELS
from fuzzing.execute.sandbox.kernel import NotPermitted

_TIMEOUT_S = 20.0
#: How an operator enables a level that the machine refuses.
HOW_TO_GET = {
    "namespaces": (
        "allow this user to make user namespaces: sysctl user.max_user_namespaces above 0, on Ubuntu also "
        "kernel.apparmor_restrict_unprivileged_userns=0; in a container a seccomp profile that allows "
        "unshare and mount"
    ),
    "landlock": (
        "Linux 5.13 or later with `landlock` in the boot parameter lsm=; in a container a seccomp profile "
        "that allows the landlock system calls"
    ),
}
#: How an operator gets a control group for each sandbox.
HOW_TO_GET_CGROUP = (
    "run the service by docs/deployment/assay.service, whose DelegateSubgroup= needs systemd 254"
)


@dataclass(frozen=True)
class Isolation:
    """The sandbox of a case; see `fuzzing.execute.sandbox.isolation`.

    level    "namespaces", "landlock" or "none"
    refused  level that this machine does not allow → why
    """

    level: str
    refused: Mapping[str, str]

    def suffices(self, required: str) -> bool:
        """Whether the level is `required` or a stronger one."""
        return LEVELS.index(self.level) <= LEVELS.index(required)


def why_no_cgroup() -> str:
    """Why the processes of a sandbox are not limited together by the kernel; "" if they are."""
    try:
        delegated_group()
    except NotPermitted as reason:
        return str(reason)
    return ""


@cache
def machine_isolation() -> Isolation:
    """The best level that this machine allows.

    Measured once, in a subprocess, because a sandbox cannot be left. Raises InfrastructureError if it cannot
    be measured.
    """
    command = [sys.executable, "-P", "-m", "fuzzing.execute.sandbox.isolation", "--json"]
    env = processes.filtered_environment(*processes.SAFE_VARIABLES)
    try:
        done = processes.run(command, env=env, cwd=Path("/"), timeout=_TIMEOUT_S)
        found = json.loads(done.stdout)
        return Isolation(str(found["level"]), {str(name): str(why) for name, why in found["refused"].items()})
    except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
        raise InfrastructureError(f"the isolation of this machine cannot be measured: {error}") from error
