"""The lines of a Python package that run in a block."""

from __future__ import annotations

import email.mime.text
import json
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.backends.base import Instrumentation
from fuzzing.backends.shared.line_recorder import format_lines, note_lines, parse_lines


def lines_of(text: str) -> dict[str, list[int]]:
    """The lines of the package json that parse a text."""
    how = Instrumentation(coverage=True)
    with note_lines(how, "json"):
        json.loads(text)
    assert {kind for kind, _ in how.notes} <= {"lines"}
    return dict(parse_lines(name) for _, name in how.notes)


def test_the_lines_are_those_that_run() -> None:
    whole = lines_of("[1]")
    assert set(whole) == {"__init__.py", "decoder.py"}
    text = Path(json.decoder.__file__).read_text(encoding="utf-8").splitlines()
    ran = [text[line - 1].strip() for line in whole["decoder.py"]]
    assert "obj, end = self.raw_decode(s, idx=_w(s, 0).end())" in ran
    assert not any("Extra data" in line for line in ran)


def test_an_exception_keeps_the_lines_before_it() -> None:
    how = Instrumentation(coverage=True)
    with pytest.raises(json.JSONDecodeError), note_lines(how, "json"):
        json.loads("[1] 2")
    assert len(how.notes) == 2
    assert sys.gettrace() is None


def test_lines_of_some_folders_are_noted() -> None:
    how = Instrumentation(coverage=True)
    with note_lines(how, "email", ("mime",)):
        email.mime.text.MIMEText("text").as_string()
    assert {parse_lines(name)[0] for _, name in how.notes} >= {"mime/text.py", "mime/base.py"}
    assert all(parse_lines(name)[0].startswith("mime/") for _, name in how.notes)


def test_code_without_a_hash_is_traced() -> None:
    """Code that Dynamo makes may have a dict among its constants."""
    code = json.loads.__code__
    own = types.FunctionType(code.replace(co_consts=(*code.co_consts, {})), json.loads.__globals__)
    own.__kwdefaults__ = json.loads.__kwdefaults__
    how = Instrumentation(coverage=True)
    with note_lines(how, "json"):
        own("[1]", cls=json.JSONDecoder)
    assert any("decoder.py" in name for _, name in how.notes)


@pytest.mark.parametrize(
    ("how", "package"),
    [
        (Instrumentation(), "json"),
        (Instrumentation(record=True), "json"),
        (Instrumentation(coverage=True), "no_such"),
    ],
)
def test_nothing_is_traced_without_coverage_or_package(how: Instrumentation, package: str) -> None:
    with note_lines(how, package):
        assert sys.gettrace() is None
        json.loads("[1]")
    assert how.notes == []


@given(st.sets(st.integers(1, 60), min_size=1))
def test_lines_survive_as_text(lines: set[int]) -> None:
    assert parse_lines(format_lines("a b/c.py", lines)) == ("a b/c.py", sorted(lines))


@pytest.mark.parametrize("text", ["", "a.py", "a.py x", "a.py 3-", "a.py -3", "a.py 1,,2"])
def test_malformed_text_holds_no_lines(text: str) -> None:
    assert parse_lines(text)[1] == []
