"""Whether processes that no test has started itself have ended."""

from __future__ import annotations

import os
import select


def assert_ends(pid: int) -> None:
    """That a process is dead or dies: a signal takes a moment. Processes of tests live for minutes."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([descriptor], [], [], 60)[0]
    os.close(descriptor)
