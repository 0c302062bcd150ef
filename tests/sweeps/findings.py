"""Checks that the findings in `docs/findings.md` still reproduce: `python -m tests.sweeps.findings [WORD]`.

Each line of a table runs after its prelude, as pasted, in its own fork, since some kill their process. It
reproduces if the compiler's output differs from the library's, or if it takes 100 s of processor time. WORD
selects sections by title. Exit code 1 if a line no longer reproduces. Takes minutes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
_ROW = re.compile(r"^\| (?P<what>[^|]+) \| `(?P<line>[^`]+)` \|$", re.MULTILINE)


class Section(NamedTuple):
    """A table of the page: title, prelude, and lines with their findings."""

    title: str
    prelude: str
    rows: tuple[tuple[str, str], ...]


#: Seconds of one line, which may wait for a program that it has started. Far more than those of its processor
#: time take on a busy machine.
LIMIT_S = 600
#: Runs each line in a fork of one process that imported the compiler; prints results as JSON. A fork is a
#: group of its own, of which nothing is left when it ends or this process is to: compilers start programs.
_EACH = """
import ctypes as _ctypes, json as _json, os as _os, resource as _resource, select as _select
import signal as _signal, sys as _sys, tempfile as _tempfile, traceback as _traceback
_pid = 0
def _end_group(*_):
    for _kill in (_os.killpg, _os.kill):
        try:
            _pid and _kill(_pid, _signal.SIGKILL)
        except ProcessLookupError:
            pass
def _end(*_):
    _end_group()
    _os._exit(143)
_signal.signal(_signal.SIGTERM, _end)
_ctypes.CDLL(None).prctl(1, _signal.SIGTERM, 0, 0, 0)  # when the parent ends: PR_SET_PDEATHSIG
for _row in _json.loads(_sys.argv[1]):
    with _tempfile.TemporaryFile("w+") as _out, _tempfile.TemporaryFile("w+") as _err:
        if (_pid := _os.fork()) == 0:
            _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
            _os.setsid()
            _resource.setrlimit(_resource.RLIMIT_CPU, (100, 100))
            _os.dup2(_out.fileno(), 1), _os.dup2(_err.fileno(), 2)
            _code = 0
            try:
                exec(_row)
            except BaseException:
                _traceback.print_exc()
                _code = 1
            _sys.stdout.flush(), _sys.stderr.flush()
            _os._exit(_code)
        _exit = _os.pidfd_open(_pid)
        _ended = _select.select([_exit], [], [], float(_sys.argv[2]))[0]
        _os.close(_exit)
        _end_group()  # before it is reaped: until then its id cannot become another's
        _code, _pid = _os.waitstatus_to_exitcode(_os.waitpid(_pid, 0)[1]), 0
        _out.seek(0), _err.seek(0)
        print(_json.dumps([_code if _ended else None, _out.read(), _err.read()]), flush=True)
"""


def sections(text: str) -> Iterator[Section]:
    """All sections in order."""
    shared, *parts = text.split("\n## ")
    common = re.search(r"```python\n(.*?)```", shared, re.DOTALL)
    for part in parts:
        title, _, body = part.partition("\n")
        prelude = re.search(r"```python\n(.*?)```", body, re.DOTALL)
        rows = tuple((row["what"], row["line"]) for row in _ROW.finditer(body))
        if prelude and rows:
            yield Section(title, (common[1] if common else "") + prelude[1], rows)


def told(section: Section, limit_s: float = LIMIT_S) -> Iterator[tuple[bool, str]]:
    """For each line whether it still reproduces, and the output, message or signal."""
    lines = json.dumps([line for _, line in section.rows])
    command = [sys.executable, "-W", "ignore", "-c", section.prelude + _EACH, lines, str(limit_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield _shown(*json.loads(line))


def _shown(code: int | None, out: str, err: str) -> tuple[bool, str]:
    given = dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)
    if "library" not in given:
        return False, f"the library fails: {err[-300:]}"
    if code is None:
        return True, "does not end"
    if "compiler" in given and code == 0:
        same = given["compiler"] == given["library"]
        return not same, f"{given['compiler'][:150]} instead of {given['library'][:150]}"
    if code < 0:
        return True, f"signal {-code}"
    output = [line for line in err.splitlines() if re.search(r"[Ee]rror|Failure|died", line)]
    return True, (output or ["fails"])[-1][-150:]


def main(words: Sequence[str]) -> int:
    """Runs the sweep."""
    gone = 0
    for section in sections(PAGE.read_text(encoding="utf-8")):
        if all(word.lower() in section.title.lower() for word in words):
            for (what, _), (still, output) in zip(section.rows, told(section), strict=True):
                gone += not still
                print(f"{'shows' if still else 'GONE '} {section.title}: {what}: {output}", flush=True)
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
