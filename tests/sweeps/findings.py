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


#: Runs each line in a fork of one process that imported the compiler; prints results as JSON.
_EACH = """
import json as _json, os as _os, resource as _resource, sys as _sys
import tempfile as _tempfile, traceback as _traceback
for _row in _json.loads(_sys.argv[1]):
    with _tempfile.TemporaryFile("w+") as _out, _tempfile.TemporaryFile("w+") as _err:
        if (_pid := _os.fork()) == 0:
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
        _code = _os.waitstatus_to_exitcode(_os.waitpid(_pid, 0)[1])
        _out.seek(0), _err.seek(0)
        print(_json.dumps([_code, _out.read(), _err.read()]), flush=True)
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


def told(section: Section) -> Iterator[tuple[bool, str]]:
    """For each line whether it still reproduces, and the output, message or signal."""
    lines = json.dumps([line for _, line in section.rows])
    command = [sys.executable, "-W", "ignore", "-c", section.prelude + _EACH, lines]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield _shown(*json.loads(line))


def _shown(code: int, out: str, err: str) -> tuple[bool, str]:
    given = dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)
    if "library" not in given:
        return False, f"the library fails: {err[-300:]}"
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
