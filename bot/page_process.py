"""Makes pages in a process of its own, with limits: the process that answers webhooks renders nothing.

A page is as large as what other people put into it. A page above a limit is an error of its request, and
the next request gets a new process.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

from bot.errors import InfrastructureError
from bot.logs import configure
from bot.page_contents import PageRequest, make_page
from bot.processes import BACKGROUND_NICENESS
from bot.settings import Settings, dump_settings
from bot.store import Database

#: Seconds of one page, the start of the process included: four times what the start takes on a busy machine.
TIMEOUT_S = 20
#: Bytes of address space of the process, of which its libraries take a third.
MAX_MEMORY = 1 << 30
#: Bytes of one page: the index of 10,000 repositories has 8 MB.
MAX_PAGE = 32 << 20

PROGRAM = ("-P", "-m", "bot.page_process")


class PageProcess:
    """Makes pages, one at a time. The process starts with the first page and ends with this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def make(self, settings: Settings, database: Database, request: PageRequest) -> str | None:
        """The HTML; None if there is no such page.

        Raises InfrastructureError if the page takes too much time or memory.
        """
        del database  # the process opens its own connection
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                process = self._process = self._start(settings)
            try:
                answer = _exchange(process, json.dumps(request).encode() + b"\n")
            except BaseException:
                self._end(process)
                raise
        if "error" in answer:
            raise InfrastructureError(str(answer["error"]))
        page = answer["page"]
        return None if page is None else str(page)

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            if self._process is not None:
                self._end(self._process)

    def _start(self, settings: Settings) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=0,
        )
        assert process.stdin is not None
        process.stdin.write(dump_settings(settings))
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        process.kill()
        with process:  # closes its pipes
            pass


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> dict[str, object]:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # its end is reported below
        process.stdin.write(request)
    deadline = time.monotonic() + TIMEOUT_S
    answer = bytearray()
    while not answer.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise InfrastructureError(f"the page took longer than {TIMEOUT_S} s")
        chunk = os.read(process.stdout.fileno(), 1 << 20)
        if not chunk:
            raise InfrastructureError("the process that makes pages ended; its log says why")
        answer += chunk
    found: dict[str, object] = json.loads(answer)
    return found


def main() -> int:
    """Answers requests, a line each, until the input ends."""
    pages = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no page
    os.nice(BACKGROUND_NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    settings = Settings(**json.loads(sys.stdin.readline()))
    configure(settings.log_format, settings.log_level)
    database = Database(settings.database_url)
    for line in sys.stdin:
        signal.alarm(TIMEOUT_S)  # the kernel ends a page that outlives who asked for it
        pages.write(json.dumps(_answer(settings, database, json.loads(line))).encode() + b"\n")
        signal.alarm(0)
    return 0


def _answer(settings: Settings, database: Database, request: PageRequest) -> dict[str, str | None]:
    try:
        page = make_page(settings, database, request)
    except InfrastructureError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"the page takes more than {MAX_MEMORY >> 20} MiB of memory"}
    if page is not None and len(page) > MAX_PAGE:
        return {"error": f"the page has {len(page):,} characters, more than {MAX_PAGE:,}"}
    return {"page": page}


if __name__ == "__main__":
    sys.exit(main())
