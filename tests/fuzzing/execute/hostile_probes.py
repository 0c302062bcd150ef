"""What a case of the worst kind tries. Each function is run in a worker, by its text: see `probing`."""
# ruff: noqa: PTH100, PTH101, PTH102, PTH104, PTH108, PTH112, PTH116, PTH211, SIM115

from __future__ import annotations

from typing import Any

from tests.fuzzing.execute import probe_runner


def write_everywhere(given: dict[str, Any]) -> object:
    import os
    from collections.abc import Callable
    from pathlib import Path

    done = []
    for folder in given["forbidden"]:
        name = str(Path(folder) / "assay-was-here")
        attempts: dict[str, Callable[[str], object]] = {
            "open": lambda name: open(name, "w"),
            "mkdir": lambda name: os.mkdir(name),
            "symlink": lambda name: os.symlink("x", name),
            "fifo": lambda name: os.mkfifo(name),
            "rename": lambda name: os.rename("mine", name),
            "link": lambda name: os.link("mine", name),
        }
        Path("mine").touch()
        for kind, attempt in attempts.items():
            try:
                attempt(name)
            except OSError:
                continue
            done.append(f"{kind} {name}")
    return done


def harm(given: dict[str, Any]) -> object:
    import os
    from collections.abc import Callable

    done = []
    victim = given["victim"]
    attempts: dict[str, Callable[[], object]] = {
        "write": lambda: open(victim, "w"),
        "append": lambda: open(victim, "a"),
        "update": lambda: open(victim, "r+"),
        "truncate": lambda: os.truncate(victim, 0),
        "unlink": lambda: os.unlink(victim),
        "rename": lambda: os.rename(victim, "mine-now"),
    }
    if given["level"] == "namespaces":
        attempts["chmod"] = lambda: os.chmod(victim, 0o600)
        attempts["utime"] = lambda: os.utime(victim)
    for kind, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            continue
        done.append(kind)
    return done


def write_where_allowed(given: dict[str, Any]) -> object:
    import multiprocessing
    import os
    import tempfile
    from pathlib import Path

    Path("relative").write_text("x")
    Path(os.environ["ASSAY_CACHE"], "kept").write_text("x")
    Path("/dev/null").write_text("x")
    multiprocessing.get_context("fork").Lock()  # a file in /dev/shm
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a").write_text("x")
        os.rename(Path(folder, "a"), "b")
    return Path("b").read_text()


def connect(given: dict[str, Any]) -> object:
    import socket

    done = []
    for family, address in given["servers"]:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                with socket.socket(getattr(socket, family), kind) as client:
                    client.settimeout(10)
                    client.connect(tuple(address) if isinstance(address, list) else address)
            except OSError:
                continue
            done.append((family, address))
    left, right = socket.socketpair()  # leads nowhere, and is needed: by asyncio, for one
    left.send(b"x")
    assert right.recv(1) == b"x"
    return done


def read(given: dict[str, Any]) -> object:
    """What of the user's files can be read or listed."""
    import os
    from pathlib import Path

    done = []
    for name in given["private"]:
        try:
            Path(name).read_bytes() if not os.path.isdir(name) else os.listdir(name)
        except OSError:
            continue
        # Folders on the way to an allowed one are there, and hold nothing else.
        if not os.path.isdir(name) or given["level"] != "namespaces":
            done.append(name)
        else:
            inside = set(os.listdir(name))
            done += [f"{name}/{one}" for one in inside if f"{name}/{one}" in given["private"]]
            if inside >= set(given["listed"].get(name, "-")):
                done.append(f"all of {name}")
    return done


def send_datagrams(given: dict[str, Any]) -> object:
    """A datagram needs no connection, and one of a pair reaches others, too."""
    import socket
    from collections.abc import Callable

    done = []
    for address in given["datagrams"]:
        attempts: dict[str, Callable[[], socket.socket]] = {
            "socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
            "raw": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_RAW),
            "pair": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0],
        }
        for kind, make in attempts.items():
            try:
                with make() as sender:
                    sender.sendto(b"out", address)
            except OSError:
                continue
            done.append((kind, address))
    return done


def make_ring(given: dict[str, Any]) -> object:
    """The errno of io_uring_setup(2): a ring makes sockets and connects them without the system calls."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(425, 1, ctypes.create_string_buffer(120))  # of struct io_uring_params
    return "made" if made >= 0 else ctypes.get_errno()


def limits(given: dict[str, Any]) -> object:
    """The limits of each process: size of a file, of a core file, private memory, number of processes."""
    import resource

    names = ("FSIZE", "CORE", "DATA", "NPROC")
    return [resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1] for name in names]


def processes(given: dict[str, Any]) -> object:
    """The processes that can be seen, by the numbers in /proc."""
    import os

    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def interfaces(given: dict[str, Any]) -> object:
    from pathlib import Path

    return [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]


def regain(given: dict[str, Any]) -> object:
    """Whoever can mount could make it writable again, be it in namespaces of its own."""
    import ctypes
    import os

    libc = ctypes.CDLL(None, use_errno=True)
    done = []
    for unshared in (0, 0x10000000 | 0x00020000):
        pid = os.fork()
        if pid == 0:
            if unshared:
                libc.unshare(unshared)
            libc.mount(None, b"/", None, 32 | 4096, None)  # MS_REMOUNT | MS_BIND, and not MS_RDONLY
            try:
                open(given["forbidden"][0] + "/assay-was-here", "w")
            except OSError:
                os._exit(0)
            os._exit(1)
        if os.waitpid(pid, 0)[1]:
            done.append(unshared)
    return done


def privileges(given: dict[str, Any]) -> object:
    from pathlib import Path

    lines = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return [lines["CapEff"], lines["CapPrm"], lines["CapBnd"], lines["NoNewPrivs"]]


def spy(given: dict[str, Any]) -> object:
    import os
    from pathlib import Path

    return Path(f"/proc/{os.getppid()}/environ").read_bytes()


def signal_parent(given: dict[str, Any]) -> object:
    import os

    os.kill(os.getppid(), 0)
    return "done"


def identity(given: dict[str, Any]) -> object:
    import os
    import pwd

    return [os.getuid(), os.getgid(), pwd.getpwuid(os.getuid()).pw_name, os.stat(".").st_uid]


def environment(given: dict[str, Any]) -> object:
    import os

    return ",".join(sorted(os.environ))


def compile_natively(given: dict[str, Any]) -> object:
    """As inductor does: a compiler's own processes, a library, and to load it."""
    import ctypes
    import os
    import subprocess
    from pathlib import Path

    Path("f.cpp").write_text('extern "C" int f() { return 42; }')
    subprocess.run(["g++", "-shared", "-fPIC", "f.cpp", "-o", "f.so"], check=True)
    return ctypes.CDLL(os.path.abspath("f.so")).f()


PROBES = {
    probe.__name__: probe_runner.source(probe)
    for probe in (
        write_everywhere, harm, read, write_where_allowed, connect, send_datagrams, make_ring, limits,
        processes, interfaces, regain, privileges, spy, signal_parent, identity, environment,
        compile_natively,
    )
}  # fmt: skip
