"""Isolation: what a case tries against the machine, at each level that this machine allows."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import fuzzing
from fuzzing.execute.limits import Limits
from fuzzing.execute.sandbox import landlock
from fuzzing.execute.sandbox.isolation import LANDLOCK, NAMESPACES
from fuzzing.execute.sandbox.kernel import NotPermitted
from fuzzing.execute.supervisor import Supervisor
from tests.fuzzing.execute import probe_runner
from tests.fuzzing.execute.hostile_probes import PROBES


@contextlib.contextmanager
def datagram_servers(folder: Path) -> Iterator[list[str]]:
    """Datagram sockets, in the file system and by an abstract name; they must get nothing."""
    path, abstract = str(folder / "datagrams"), f"\0assay-test-datagrams-{os.getpid()}"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as named,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hidden,
    ):
        for server, address in ((named, path), (hidden, abstract)):
            server.bind(address)
        yield [path, abstract]


@dataclass
class Seen:
    level: str
    answers: dict[str, str]
    victim: Path
    cache: Path


@contextlib.contextmanager
def servers(folder: Path) -> Iterator[list[tuple[str, object]]]:
    """Sockets that anyone here could reach: by the network, in the file system, by an abstract name."""
    path, abstract = str(folder / "socket"), f"\0assay-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as internet,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as named,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hidden,
    ):
        for server, address in ((named, path), (hidden, abstract)):
            server.bind(address)
            server.listen()
        here = list(internet.getsockname())
        yield [("AF_INET", here), ("AF_UNIX", path), ("AF_UNIX", abstract)]


@pytest.fixture(scope="module", params=[NAMESPACES, LANDLOCK])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """All probes in one worker of the level."""
    folder = tmp_path_factory.mktemp("outside")
    victim, cache = folder / "victim", folder / "cache"
    victim.write_text("precious")
    forbidden = [
        folder,
        Path.home(),
        "/home",
        "/tmp",
        "/var/tmp",
        "/",
        "/proc",
        Path(fuzzing.__file__).parent,
    ]
    with (
        pytest.MonkeyPatch.context() as patch,
        servers(folder) as reachable,
        datagram_servers(folder) as datagrams,
    ):
        patch.setenv("ASSAY_TEST_TOKEN", "hush")
        patch.setenv("GITHUB_TOKEN", "hush")
        options = {
            "forbidden": [str(name) for name in forbidden],
            "victim": str(victim),
            "private": [
                str(victim),
                str(folder),
                str(Path.home()),
                "/",
                "/var",
                "/etc/shadow",
                "/run",
                "/tmp",
            ],
            # What stands in them outside; too few names might all lead to a folder that is allowed.
            "listed": {
                str(name): names
                for name in (Path.home(), "/var", "/run")
                if len(names := os.listdir(name)) > 3
            },
            "servers": reachable,
            "datagrams": datagrams,
            "level": request.param,
        }
        command = probe_runner.command(options=options, cache=str(cache), isolation=request.param)
        supervisor: Supervisor[str] = Supervisor(command)
        found = probe_runner.answers(supervisor, PROBES)
    if supervisor.isolation != request.param:
        pytest.skip(f"this machine refuses {request.param}")
    return Seen(supervisor.isolation, found, victim, cache)


def test_nothing_can_be_written_outside(seen: Seen) -> None:
    assert seen.answers["write_everywhere"] == "[]"


def test_nothing_that_is_there_can_be_harmed(seen: Seen) -> None:
    assert seen.answers["harm"] == "[]"
    assert seen.victim.read_text() == "precious"


def test_nothing_of_the_users_can_be_read(seen: Seen) -> None:
    assert seen.answers["read"] == "[]"


def test_no_datagram_leaves(seen: Seen) -> None:
    assert seen.answers["send_datagrams"] == "[]"


def test_no_ring_makes_sockets(seen: Seen) -> None:
    assert seen.answers["make_ring"] == str(errno.ENOSYS)


def test_every_process_has_limits(seen: Seen) -> None:
    of_files, of_cores, of_memory, of_processes = map(int, seen.answers["limits"].strip("[]").split(","))
    given = Limits()
    assert (of_files, of_cores, of_memory) == (given.file_bytes, 0, 4 * given.memory_bytes)
    if seen.level == NAMESPACES:  # where the kernel counts them apart from the user's others
        assert of_processes == 4096


def test_other_processes_cannot_be_seen(seen: Seen) -> None:
    if seen.level != NAMESPACES:
        pytest.skip("Landlock and seccomp leave /proc as it is")
    assert seen.answers["processes"] == "[1, 2, 3]"  # the first, the forkserver, the worker


def test_scratch_and_cache_can_be_written(seen: Seen) -> None:
    assert seen.answers["write_where_allowed"] == "x"
    assert (seen.cache / "kept").read_text() == "x"


def test_nobody_can_be_reached(seen: Seen) -> None:
    assert seen.answers["connect"] == "[]"


def test_there_is_no_network(seen: Seen) -> None:
    if seen.level != NAMESPACES:
        pytest.skip("Landlock and seccomp leave the interfaces where they are, and close the sockets")
    assert seen.answers["interfaces"] == "['lo']"


def test_walls_cannot_be_taken_down_from_inside(seen: Seen) -> None:
    assert seen.answers["regain"] == "[]"


def test_no_privilege_is_left_to_gain(seen: Seen) -> None:
    *capabilities, no_new = seen.answers["privileges"].strip("[]").replace("'", "").split(", ")
    assert no_new == "1"
    assert set(capabilities[:2]) == {"0" * 16}
    if seen.level == NAMESPACES or os.getuid() == 0:  # others keep a bound that they cannot reach
        assert capabilities[2] == "0" * 16


def test_the_supervisors_environment_cannot_be_read(seen: Seen) -> None:
    assert seen.answers["spy"].startswith("PermissionError")


def test_what_started_the_worker_cannot_be_signalled(seen: Seen) -> None:
    try:
        known = landlock.version()
    except NotPermitted:
        known = 0
    if known < 6:
        pytest.skip("Landlock scopes no signals here")
    assert seen.answers["signal_parent"].startswith("PermissionError")


def test_everyone_keeps_their_name(seen: Seen) -> None:
    import pwd

    uid = os.getuid()
    expected = [uid, os.getgid(), pwd.getpwuid(uid).pw_name, seen.victim.stat().st_uid]
    assert seen.answers["identity"] == str(expected)


def test_a_worker_sees_no_variable_but_these(seen: Seen) -> None:
    names = set(seen.answers["environment"].split(","))
    allowed = {"PATH", "LD_LIBRARY_PATH", "TZ", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "ASSAY_CACHE"}
    assert names <= allowed | {"CUDA_VISIBLE_DEVICES", "OPENBLAS_NUM_THREADS"}


def test_a_native_compiler_runs_inside(seen: Seen) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    assert seen.answers["compile_natively"] == "42"


def test_none_is_none() -> None:
    """The probes do find what they look for where there are no walls."""
    supervisor: Supervisor[str] = Supervisor(probe_runner.command(isolation="none"))
    found = probe_runner.answers(supervisor, {"signal_parent": PROBES["signal_parent"], "spy": PROBES["spy"]})
    assert supervisor.isolation == "none"
    assert found["signal_parent"] == "done"
    assert b"PATH=" in found["spy"].encode()
