"""A process that answers: what is told of one that dies, is late, or says nothing."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fuzzing.errors import InfrastructureError
from fuzzing.generate.json_process import JsonProcess, ProcessExitedError

ECHO = """
import json, os, sys, time
print(json.dumps({"event": "ready", "pid": os.getpid(), "set": os.environ.get("SET")}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "die" in asked:
        sys.exit("last words")
    if "kill" in asked:
        os.kill(os.getpid(), 9)
    if "sleep" in asked:
        time.sleep(600)
    print(json.dumps(asked), flush=True)
"""


@contextmanager
def _child(code: str = ECHO) -> Iterator[JsonProcess]:
    child = JsonProcess([sys.executable, "-S", "-c", code], {"SET": "yes"}, 600.0, "mend it")
    try:
        yield child
    finally:
        child.end()


def test_it_answers_line_for_line_and_has_the_environment() -> None:
    with _child() as child:
        assert child.ready["set"] == "yes"
        for number in range(5):
            assert child.request({"number": number, "text": "ü\n" * 50_000}) == {
                "number": number, "text": "ü\n" * 50_000
            }  # fmt: skip


@pytest.mark.parametrize(("request_", "code", "words"), [("die", 1, "last words"), ("kill", -9, "")])
def test_a_death_is_told_with_code_and_words(request_: str, code: int, words: str) -> None:
    with _child() as child, pytest.raises(ProcessExitedError) as caught:
        child.request({request_: True})
    assert (caught.value.code, str(caught.value)) == (code, words)


def test_one_that_is_late_is_ended() -> None:
    with _child() as child:
        pid = child.ready["pid"]
        child._seconds = 0.125  # only now: it never answers what it is asked next, however fast it started
        with pytest.raises(ProcessExitedError, match=r"no answer for 0\.125 s"):
            child.request({"sleep": True})
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_one_that_never_gets_ready_is_told() -> None:
    with pytest.raises(ProcessExitedError, match="not today"):
        JsonProcess([sys.executable, "-S", "-c", "import sys; sys.exit('not today')"], {}, 600.0, "mend it")


def test_one_that_cannot_be_started_says_what_to_do() -> None:
    with pytest.raises(InfrastructureError, match="No such file or directory; mend it"):
        JsonProcess(["/no/such/python"], {}, 600.0, "mend it")


def test_it_ends_when_nothing_uses_it() -> None:
    child = JsonProcess([sys.executable, "-S", "-c", ECHO], {}, 600.0, "mend it")
    pid = child.ready["pid"]
    del child
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_finds_us_and_what_the_caller_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere/else")
    code = "import json, sys, fuzzing; print(json.dumps({'path': sys.path}), flush=True); sys.stdin.read()"
    with _child(code) as child:
        assert "/somewhere/else" in child.ready["path"]
