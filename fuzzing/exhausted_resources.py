"""Messages of a machine that lacks a resource."""

from __future__ import annotations

import re

#: Messages of the C library for ENOSPC, EDQUOT, EMFILE, ENFILE, EAGAIN of fork (errno(3)); and of gcc and
#: clang whose compiler proper was killed, as the kernel does for want of memory.
_FULL = re.compile(
    r"\b(No space left on device|Disk quota exceeded|Too many open files|Resource temporarily unavailable"
    r"|Killed signal terminated program|command failed due to signal 9)\b"
)


def exhausted_resource(words: str) -> str:
    """The resource that the machine lacked, by this text, "" if none."""
    found = _FULL.search(words)
    return found[0] if found else ""
