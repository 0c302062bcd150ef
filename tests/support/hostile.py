"""Hostile code in toolchains: writes its loot to a folder outside the sandbox."""

from __future__ import annotations

import os
import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECRET = "secret-of-the-service"

_PAYLOAD = """
import os, socket
def attack(way):
    def write(name, text):
        with open(os.path.join({loot!r}, name), "a") as file:
            file.write(way + " " + text)
    def attempt(name, function):
        try:
            found = function()
        except BaseException:
            return
        try:
            write(name, str(found))
        except BaseException:
            pass
    def parent():
        pid = os.getppid()
        for _ in range(9):
            with open("/proc/%d/environ" % pid, "rb") as file:
                if {secret!r}.encode() in file.read():
                    raise SystemExit("LEAKED {secret}")
            with open("/proc/%d/stat" % pid) as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
    attempt("written", lambda: "outside")
    attempt("connected", lambda: socket.create_connection(("127.0.0.1", {port}), 2).send(way.encode()))
    attempt("environment", lambda: [key for key, value in os.environ.items() if value == {secret!r}][0])
    attempt("planted", lambda: open(os.path.join(__import__("sys").prefix, "planted"), "w").close())
    try:
        parent()
    except OSError:
        pass
"""

_EXTENSION = """
#include <Python.h>
__attribute__((constructor)) static void enter(void) {{
    FILE *file = fopen("{loot}/constructor", "w");
    if (file) fclose(file);
}}
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "hostile_native", NULL, -1, NULL}};
PyMODINIT_FUNC PyInit_hostile_native(void) {{ enter(); return PyModule_Create(&module); }}
"""


@contextmanager
def listener() -> Iterator[tuple[int, socket.socket]]:
    """A local port that hostile code may try to reach; `accept` does not block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server.getsockname()[1], server


def connections(server: socket.socket) -> int:
    """Number of connections."""
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def payload(loot: Path, port: int) -> str:
    """Source of `attack(way)`, which tries to write, connect, read secrets and change the toolchain."""
    return _PAYLOAD.format(loot=os.fspath(loot), port=port, secret=SECRET)


def wheel_files(loot: Path, port: int) -> dict[str, bytes]:
    """Files of a wheel that attacks when the interpreter starts: a `.pth` and sitecustomize."""
    return {
        "hostile_payload.py": payload(loot, port).encode(),
        "hostile.pth": b"import hostile_payload; hostile_payload.attack('pth')\n",
        "sitecustomize.py": b"import hostile_payload; hostile_payload.attack('sitecustomize')\n",
    }


def extension(folder: Path, loot: Path) -> bytes:
    """A native module `hostile_native` whose constructor writes outside."""
    source, built = folder / "hostile_native.c", folder / "hostile_native.so"
    source.write_text(_EXTENSION.format(loot=loot))
    include = sysconfig.get_path("include")
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(built)], check=True)
    return built.read_bytes()
