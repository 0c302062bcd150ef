"""What memory costs OpenVINO between two models, which a worker that compiles one after the other can save.

To compile a model of one operator, OpenVINO makes and frees a great many little objects, most of them
patterns that its passes look for. Two habits make them dear:

- Since the end of 2024 a compiled model calls `malloc_trim(0)` when it ends (its pull requests 27534 and
  27881), so that a service that unloads a model holds no more than it needs. All that is free goes back to
  the kernel, and the next model has it mapped anew, page by page: 940 faults a model in 2026.4.
- glibc keeps small blocks apart in fastbins when they are freed, and joins them all whenever it looks for a
  large one, which with so many of them is work each time.

Without both a model of one operator takes three quarters of the time. What is compiled, and how, stays the
same.
"""

from __future__ import annotations

import ctypes
import mmap
import platform

_M_MXFAST = 1  # malloc.h: the size up to which freed blocks are kept apart
#: What a function that does nothing and returns 0 looks like: endbr64; xor eax, eax; ret.
_NOTHING = {"x86_64": b"\xf3\x0f\x1e\xfa\x31\xc0\xc3"}


def retain_freed_memory() -> None:
    """Has this process keep what it frees, until it ends; where that cannot be had, all is as it was.

    Of this process's own copy of libc, since libraries find `malloc_trim` there before any of ours.
    """
    libc = ctypes.CDLL(None)
    mallopt, trim = getattr(libc, "mallopt", None), getattr(libc, "malloc_trim", None)  # musl has neither
    if mallopt is not None:
        mallopt(_M_MXFAST, 0)
    code = _NOTHING.get(platform.machine())
    if trim is not None and code is not None:
        _overwrite(libc, ctypes.cast(trim, ctypes.c_void_p).value or 0, code)


def _overwrite(libc: ctypes.CDLL, address: int, code: bytes) -> None:
    """Puts `code` in place of the machine code at `address`, unless the kernel forbids it."""
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    begin = address & -mmap.PAGESIZE
    size = address + len(code) - begin
    if libc.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) == 0:
        ctypes.memmove(address, code, len(code))
        libc.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_EXEC)
