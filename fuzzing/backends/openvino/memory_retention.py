"""Avoids the cost of returning memory to the kernel between two OpenVINO models.

To compile a model of one operator, OpenVINO makes and frees many small objects, mostly the patterns of its
passes. Two behaviors make that slow:

- Since the end of 2024 a compiled model calls `malloc_trim(0)` in its destructor (pull requests 27534 and
  27881), so that a service that unloads a model frees its memory. All free memory goes back to the kernel,
  and the next model maps it anew: 940 page faults a model in 2026.4.
- glibc keeps small freed blocks in fastbins, and joins them all whenever it looks for a large one.

Without both, a model of one operator takes three quarters of the time. The compiled code stays the same.
"""

from __future__ import annotations

import ctypes
import mmap
import platform

_M_MXFAST = 1  # malloc.h: the size up to which freed blocks are kept in fastbins
#: A function that does nothing and returns 0: endbr64; xor eax, eax; ret.
_NOTHING = {"x86_64": b"\xf3\x0f\x1e\xfa\x31\xc0\xc3"}


def retain_freed_memory() -> None:
    """Makes this process keep freed memory until it ends; no effect where that is not possible.

    It patches this process's copy of libc, since libraries resolve `malloc_trim` there first.
    """
    libc = ctypes.CDLL(None)
    mallopt, trim = getattr(libc, "mallopt", None), getattr(libc, "malloc_trim", None)  # musl has neither
    if mallopt is not None:
        mallopt(_M_MXFAST, 0)
    code = _NOTHING.get(platform.machine())
    if trim is not None and code is not None:
        _overwrite(libc, ctypes.cast(trim, ctypes.c_void_p).value or 0, code)


def _overwrite(libc: ctypes.CDLL, address: int, code: bytes) -> None:
    """Overwrites the machine code at `address` with `code`, unless the kernel forbids it."""
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    begin = address & -mmap.PAGESIZE
    size = address + len(code) - begin
    if libc.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) == 0:
        ctypes.memmove(address, code, len(code))
        libc.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_EXEC)
