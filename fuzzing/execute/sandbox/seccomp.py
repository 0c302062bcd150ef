"""seccomp: system calls that fail, whoever asks.

A network namespace has no network, but a socket in the file system is reached from it all the same, on a
read-only mount too: that of Docker, say, if root started us. So nothing can be connected to, and no socket
be made but of the local family: CUDA's driver opens one of those to listen on, and pairs lead nowhere.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Dict, List, NamedTuple, Optional, Sequence

from fuzzing.execute.sandbox.isolation import LIBC, NotPermitted, check_call

# linux/filter.h, linux/bpf_common.h
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENT = 0, 4, 16  # struct seccomp_data, little-endian
# linux/seccomp.h
_SET_MODE_FILTER = 1
_SPEC_ALLOW = 1 << 2  # leaves the compiler its speed: cases are no threat to their own process
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000  # a second set of numbers on x86_64
_IO_URING_SETUP = 425  # of every architecture; a ring makes sockets without the calls
_AF_UNIX = 1


class _Machine(NamedTuple):
    """Numbers of linux/audit.h and of the architecture's own table."""

    architecture: int
    seccomp: int
    socket: int
    connect: int


_MACHINES: Dict[str, _Machine] = {
    "x86_64": _Machine(0xC000003E, 317, 41, 42),
    "aarch64": _Machine(0xC00000B7, 277, 198, 203),
}


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class DeniedCall(NamedTuple):
    """A system call by its number, the errno it fails with, and the first argument that excepts it."""

    number: int
    error: int
    unless: Optional[int] = None


def deny_sockets() -> None:
    """Lets socket(2) and connect(2) fail with EACCES, here and in every child; raises isolation.Refused."""
    machine = _machine()
    deny(
        DeniedCall(machine.socket, errno.EACCES, unless=_AF_UNIX),
        DeniedCall(machine.connect, errno.EACCES),
        DeniedCall(_IO_URING_SETUP, errno.ENOSYS),
    )


def deny(*calls: DeniedCall) -> None:
    """Lets system calls fail from now on. Needs no_new_privs. Raises isolation.Refused."""
    machine = _machine()
    code = _assemble(machine.architecture, calls)
    program = _Program(len(code) // 8, code)
    check_call(LIBC.syscall(machine.seccomp, _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(program)), "seccomp")


def _machine() -> _Machine:
    name = os.uname().machine
    if name not in _MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise NotPermitted(f"seccomp: the system calls of {name} are not known to us")
    return _MACHINES[name]


def _assemble(architecture: int, calls: Sequence[DeniedCall]) -> bytes:
    """Calls of another architecture, by which the numbers would mean other things, fail too."""
    lines: List[bytes] = [
        _line(_LOAD, 0, 0, _AT_ARCHITECTURE),
        _line(_IF_EQUAL, 1, 0, architecture),
        _line(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        _line(_LOAD, 0, 0, _AT_NUMBER),
        _line(_IF_AT_LEAST, 0, 1, _X32),
        _line(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for call in calls:
        body = [_line(_RETURN, 0, 0, _ERRNO | call.error)]
        if call.unless is not None:
            allowed = _line(_RETURN, 0, 0, _ALLOW)
            body = [_line(_LOAD, 0, 0, _AT_ARGUMENT), _line(_IF_EQUAL, 0, 1, call.unless), allowed, *body]
        lines += [_line(_IF_EQUAL, 0, len(body), call.number), *body]
    return b"".join([*lines, _line(_RETURN, 0, 0, _ALLOW)])


def _line(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
