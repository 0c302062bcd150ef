"""Which level is taken where the kernel, or who configured it, refuses some: each is really refused here."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from fuzzing.execute.limits import Limits
from fuzzing.execute.sandbox import isolation
from fuzzing.execute.sandbox.isolation import LANDLOCK, NAMESPACES, NONE
from fuzzing.execute.sandbox.seccomp import _MACHINES
from fuzzing.execute.supervisor import Supervisor
from tests.fuzzing.execute import probe_runner

MACHINE = os.uname().machine
LANDLOCK_CREATE, MOUNT_SETATTR, SECCOMP = 444, 442, _MACHINES["x86_64"].seccomp
UNSHARE, MOUNT = 272, 165  # of x86_64

pytestmark = pytest.mark.skipif(MACHINE != "x86_64", reason="the numbers of its system calls are used")

#: Refuses system calls as a container does, to itself and to what it then becomes.
REFUSE = """
import os, sys
from fuzzing.execute.sandbox.kernel import no_new_privileges
from fuzzing.execute.sandbox.seccomp import DeniedCall, deny
no_new_privileges()
deny(*(DeniedCall(int(number), {error}) for number in sys.argv[1].split(",") if number))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""

#: As any user but root: no privilege in the first namespace, and no leave to write there.
AS_NOBODY = """
import ctypes, os, sys
from fuzzing.execute.sandbox import isolation, landlock, namespaces, seccomp
import json, tempfile
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, which the change has cleared
sys.exit(isolation.main(["--json"]))
"""


def told(*program: str, without: tuple[int, ...] = (), error: int = errno.EPERM) -> dict[str, Any]:
    refusing = [sys.executable, "-c", REFUSE.format(error=error), ",".join(map(str, without)), *program]
    done = subprocess.run(refusing, capture_output=True, text=True, timeout=600, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


REPORT = ("-m", "fuzzing.execute.sandbox.isolation", "--json")


@pytest.fixture(autouse=True, scope="module")
def _walls() -> None:
    if told(*REPORT)["level"] != NAMESPACES:
        pytest.skip("this machine refuses namespaces anyway")


@pytest.mark.parametrize(
    ("without", "reason"),
    [((UNSHARE,), "unshare"), ((MOUNT_SETATTR,), "mount_setattr"), ((MOUNT,), "making mounts private")],
    ids=["no user namespaces", "namespaces without mounts", "no mounts at all"],
)
def test_landlock_where_namespaces_are_refused(without: tuple[int, ...], reason: str) -> None:
    found = told(*REPORT, without=without)
    assert found["level"] == LANDLOCK
    assert found["refused"].keys() == {NAMESPACES}
    assert found["refused"][NAMESPACES].startswith(reason)
    assert found["refused"][NAMESPACES].endswith("Operation not permitted")


@pytest.mark.parametrize("missing", [LANDLOCK_CREATE, SECCOMP])
def test_none_where_one_half_of_the_rest_is_missing(missing: int) -> None:
    found = told(*REPORT, without=(UNSHARE, missing), error=errno.ENOSYS)
    assert found["level"] == NONE
    assert found["refused"].keys() == {NAMESPACES, LANDLOCK}


def test_any_user_can_enter_what_root_can() -> None:
    assert told("-c", AS_NOBODY) == {"level": NAMESPACES, "refused": {}}


def test_any_user_falls_back_as_root_does() -> None:
    assert told("-c", AS_NOBODY, without=(UNSHARE,))["level"] == LANDLOCK


def test_a_level_can_be_forgone() -> None:
    supervisor: Supervisor[str] = Supervisor(
        probe_runner.command(isolation=LANDLOCK, limits=Limits(run_s=10))
    )
    assert probe_runner.answers(supervisor, {"": "result = 1"}) == {"": "1"}
    assert supervisor.isolation == LANDLOCK


def test_the_report_is_used_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert isolation.main([]) == 2
    assert "--json" in capsys.readouterr().err
