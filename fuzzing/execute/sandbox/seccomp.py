"""seccomp: system calls that fail for every caller.

Sockets in the file system or with abstract names can be reached without a network. So no socket may connect,
and only local stream sockets may be made: CUDA's driver listens on one, and pairs of them lead nowhere. A
local datagram socket, also one of a pair, could reach others by name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Dict, List, NamedTuple, Sequence, Tuple

from fuzzing.execute.sandbox.kernel import LIBC, NotPermitted, check_call

# linux/filter.h, linux/bpf_common.h
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16  # struct seccomp_data, little-endian
# linux/seccomp.h
_SET_MODE_FILTER = 1
_SPEC_ALLOW = 1 << 2  # keeps the compiler's speed: cases are no threat to their own process
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000  # a second set of numbers on x86_64
_IO_URING_SETUP = 425  # the same on every architecture; a ring makes sockets without the calls
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET = 1, 1, 5
_SOCK_TYPE_MASK = 0xF  # linux/net.h; flags are above


class _Machine(NamedTuple):
    """Numbers of linux/audit.h and of the architecture's own table."""

    architecture: int
    seccomp: int
    socket: int
    connect: int
    socketpair: int


_MACHINES: Dict[str, _Machine] = {
    "x86_64": _Machine(0xC000003E, 317, 41, 42, 53),
    "aarch64": _Machine(0xC00000B7, 277, 198, 203, 199),
}


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class ArgumentTest(NamedTuple):
    """Holds if the bits of `mask` of the argument at this index (from 0) are one of `values`."""

    place: int
    values: Tuple[int, ...]
    mask: int = 0xFFFFFFFF


class DeniedCall(NamedTuple):
    """A system call by number, and the errno it fails with, unless all tests of `unless` hold."""

    number: int
    error: int
    unless: Tuple[ArgumentTest, ...] = ()


def deny_sockets() -> None:
    """Makes sockets fail with EACCES, here and in every child; raises NotPermitted."""
    machine = _machine()
    local_streams = (
        ArgumentTest(0, (_AF_UNIX,)),
        ArgumentTest(1, (_SOCK_STREAM, _SOCK_SEQPACKET), _SOCK_TYPE_MASK),
    )
    deny(
        DeniedCall(machine.socket, errno.EACCES, unless=local_streams),
        DeniedCall(machine.socketpair, errno.EACCES, unless=local_streams),
        DeniedCall(machine.connect, errno.EACCES),
        DeniedCall(_IO_URING_SETUP, errno.ENOSYS),
    )


def deny(*calls: DeniedCall) -> None:
    """Makes system calls fail from now on. Needs no_new_privs. Raises NotPermitted."""
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
    """The filter's program. Calls of another architecture, with other numbers, fail too."""
    lines: List[bytes] = [
        _line(_LOAD, 0, 0, _AT_ARCHITECTURE),
        _line(_IF_EQUAL, 1, 0, architecture),
        _line(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        _line(_LOAD, 0, 0, _AT_NUMBER),
        _line(_IF_AT_LEAST, 0, 1, _X32),
        _line(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for call in calls:
        body = _except([_line(_RETURN, 0, 0, _ERRNO | call.error)], call.unless)
        lines += [_line(_IF_EQUAL, 0, len(body), call.number), *body]
    return b"".join([*lines, _line(_RETURN, 0, 0, _ALLOW)])


def _except(denial: List[bytes], unless: Sequence[ArgumentTest]) -> List[bytes]:
    """The instructions of a denial after tests of the arguments: the first that does not hold jumps to it."""
    lines = [_line(_RETURN, 0, 0, _ALLOW), *denial] if unless else denial
    for test in reversed(unless):
        to_denial = len(lines) - len(denial)
        count = len(test.values)
        tests = [
            _line(_IF_EQUAL, count - 1 - place, 0 if place < count - 1 else to_denial, value)
            for place, value in enumerate(test.values)
        ]
        load = _line(_LOAD, 0, 0, _AT_ARGUMENTS + 8 * test.place)
        lines = [load, _line(_AND, 0, 0, test.mask), *tests, *lines]
    return lines


def _line(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
