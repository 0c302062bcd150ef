"""Isolation: limits of what a case can do to its machine.

There are three levels. The strongest that the kernel allows is taken:

    namespaces  user, mount, process and network namespaces of its own: the file system holds the system's
                libraries and the folders named, /dev the harmless devices and the GPUs, there is no network
    landlock    the same by Landlock and seccomp, where namespaces are refused (most containers); names and
                sizes of files can still be seen, and the owner or mode of a file of the same user changed
    none        no limit: cases can do whatever the user can

At the first two levels a case connects no socket, signals and traces only its own processes (Landlock version
6, Linux 6.12), and gains no privilege, even if root started it.

`python -m fuzzing.execute.sandbox.isolation --json` prints this machine's level, and why no better one holds.

Python 3.8 and the standard library only.
"""

from __future__ import annotations

import os
from typing import Callable, Dict, List, NamedTuple

from fuzzing.execute.sandbox import landlock, namespaces, seccomp
from fuzzing.execute.sandbox.kernel import AllowedAccess, NotPermitted, drop_privileges

NAMESPACES, LANDLOCK, NONE = LEVELS = ("namespaces", "landlock", "none")


class SandboxStatus(NamedTuple):
    """The current level, and why no better one holds: level → reason."""

    level: str
    refused: Dict[str, str]


def enter(access: AllowedAccess, best: str = NAMESPACES) -> SandboxStatus:
    """Enters the strongest level allowed, `best` or below, for this process and all its children.

    Irreversible. The process must have one thread. At the level `namespaces` its children are in a process
    namespace of their own.
    """
    refused: Dict[str, str] = {}
    entry_functions = _entry_functions()
    for level in LEVELS[LEVELS.index(best) :]:
        if level == NONE:
            break
        try:
            entry_functions[level](access)
        except NotPermitted as error:
            refused[level] = str(error)
        else:
            return SandboxStatus(level, refused)
    return SandboxStatus(NONE, refused)


def _entry_functions() -> Dict[str, Callable[[AllowedAccess], None]]:
    def by_namespaces(access: AllowedAccess) -> None:
        namespaces.enter(access)
        drop_privileges()
        for extra in (landlock.scope_signals, seccomp.deny_sockets):  # beyond what defines the level
            try:
                extra()
            except NotPermitted:
                continue

    def by_landlock(access: AllowedAccess) -> None:
        drop_privileges()
        landlock.enter(access)
        seccomp.deny_sockets()

    return {NAMESPACES: by_namespaces, LANDLOCK: by_landlock}


def main(argv: List[str]) -> int:
    """Prints the level that this machine allows, as JSON; returns the exit code."""
    import json  # here: every worker imports this module
    import sys
    import tempfile

    if argv != ["--json"]:
        sys.stderr.write("usage: python -m fuzzing.execute.sandbox.isolation --json\n")
        return 2
    folder = tempfile.mkdtemp(prefix="assay-isolation-")
    pid = os.fork()  # this process, which is not sandboxed, removes the folder
    if pid == 0:
        entered = enter(AllowedAccess((folder,), 1 << 20))
        sys.stdout.write(json.dumps(entered._asdict()) + "\n")
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    os.rmdir(folder)  # noqa: PTH106
    return int(status != 0)


if __name__ == "__main__":
    from sys import argv

    raise SystemExit(main(argv[1:]))
