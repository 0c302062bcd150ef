"""Parsers of foreign text answer anything with a value or a problem, in bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.commands.grammar import parse
from bot.commands.registry import verbs
from bot.config import cron, default_config, parse_config, units
from bot.config.pins import MAX_BYTES, MAX_KEY_PARTS, MAX_REQUIREMENT, find_pins
from bot.errors import ConfigError, ProvisionError, UsageError
from bot.github.diffs import parse_unified_diff
from bot.toolchains.probe import parse_answer
from bot.webhooks.events.issue_comment import is_own_comment

AT = datetime(2026, 11, 20, tzinfo=UTC)
CONFIG = b"version: 1\nbackend: openvino\nsources: [onnx-node-tests]\noptions: {precision: f16}\n"
REQUIREMENTS = b"openvino==2026.4.1 ; python_version >= '3.8' \\\n --hash=sha256:00\nnumpy==1.26.4 # why\n"
PROJECT = b'[project]\nname = "x"\ndependencies = ["openvino==2026.4.1; python_version > \'3\'"]\n'
COMMENT = (
    b"```\n/assay stop\n```\n"
    b"/assay run source=isra budget=2m\n<!-- x -->\n/assay mute op=Resize until=30d why\n"
)
DIFF = (
    b"diff --git a/x.cc b/x.cc\n--- a/x.cc\n+++ b/x.cc\n@@ -1,2 +1,2 @@ f\n a\n-b\n+c\n"
    b"diff --git a/y b/z\nrename from y\nrename to z\nBinary files a/y and b/z differ\n"
)
PROBE = b'{"python": "3.11.7", "packages": {"openvino": "1.0"}, "content": "00", "sources": ["/a.py"]}'
#: Seconds for one input of 64 KiB; the slowest takes about 1 s on an idle core.
LIMIT_S = 20.0


def pins(content: bytes) -> object:
    return find_pins(content, "requirements.txt", ["openvino", "numpy"])


def project(content: bytes) -> object:
    return find_pins(content, "pyproject.toml", ["openvino", "numpy"])


def default(content: bytes) -> object:
    return default_config(lambda path: None if path == ".github/assay.yml" else content)


def comment(content: bytes) -> object:
    body = content.decode(errors="replace")
    return parse(body, verbs()), is_own_comment(body)


def cron_line(content: bytes) -> object:
    return cron.next_time(content.decode(errors="replace"), AT)


def duration(content: bytes) -> object:
    return units.parse_duration(content.decode(errors="replace"))


def diff(content: bytes) -> object:
    return parse_unified_diff(content.decode(errors="replace"))


def probe_answer(content: bytes) -> object:
    return parse_answer(content.decode(errors="replace"), Path("python"))


PARSERS: dict[Callable[[bytes], object], tuple[bytes, tuple[type[Exception], ...]]] = {
    parse_config: (CONFIG, (ConfigError,)),
    pins: (REQUIREMENTS, (ConfigError,)),
    project: (PROJECT, (ConfigError,)),
    default: (REQUIREMENTS, (ConfigError,)),
    comment: (COMMENT, ()),
    cron_line: (b"*/5 0-7 1,15 jan-dec sun-sat/2", (ValueError,)),
    duration: (b"90.5 s", (ValueError,)),
    diff: (DIFF, (UsageError,)),
    probe_answer: (PROBE, (ProvisionError,)),
}


@st.composite
def mutations(draw: st.DrawFn, seed: bytes) -> bytes:
    """A valid text with some of its pieces repeated, dropped, swapped or replaced."""
    text = bytearray(seed)
    for _ in range(draw(st.integers(1, 6))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 12)))
        piece = bytes(text[begin:end])
        put = draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from(
                    [
                        b"",
                        b"\n",
                        b"\t",
                        b"=",
                        b"\\",
                        b"'",
                        b"(",
                        b"[",
                        b"{",
                        b"&a ",
                        b"*a",
                        b"- ",
                        b"9" * 5000,
                    ]
                ),
                st.integers(0, 50).map(lambda times, piece=piece: piece * times),  # type: ignore[misc]
            )
        )
        text[begin:end] = put
    return bytes(text)


def attempt(parser: Callable[[bytes], object], content: bytes) -> None:
    try:
        parser(content)
    except PARSERS[parser][1]:
        pass


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.__name__)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_anything_gives_a_value_or_a_problem(parser: Callable[[bytes], object], data: st.DataObject) -> None:
    attempt(parser, data.draw(mutations(PARSERS[parser][0]) | st.binary(max_size=200)))


SIZE = 60_000
HOSTILE: dict[str, bytes] = {
    "digits": b"openvino==" + b"9" * 5000,
    "digits in a dotted version": b"openvino==1." + b"9" * 1900,
    "nested markers": b"openvino==1.0; " + b"(" * 900 + b"python_version > '3'" + b")" * 900,
    "many nested markers": b"openvino==1; " + b"(" * SIZE,
    "long chain of markers": b"openvino==1.0; " + b" or ".join([b"python_version>'3'"] * 3000),
    "continued lines": b"openvino\\\n" * (SIZE // 10),
    "hashes": b"openvino==1 " + b" --hash=a" * (SIZE // 9),
    "spaces": b"openvino" + b" " * SIZE + b"==1",
    "extras": b"openvino[" + b"a," * (SIZE // 2),
    "dotted key": b"a." * (SIZE // 2) + b"a = 1",
    "dotted table": b"[" + b"a." * (SIZE // 2) + b"a]",
    "dotted keys": (b"a." * 99 + b"a = 1\n") * (SIZE // 204),
    "nested arrays": b"a = " + b"[" * SIZE,
    "nested tables": b"a = " + b"{a=" * (SIZE // 3),
    "flow sequences": b"version: " + b"[" * SIZE,
    "block sequences": b"- " * (SIZE // 2),
    "aliases": b"a: &a [1]\nb: [" + b"*a," * (SIZE // 3) + b"]",
    "keys": b"".join(b"k%d: 1\n" % number for number in range(SIZE // 10)),
    "one key again": b"k: 1\n" * (SIZE // 5),
    "quoted lines": b'a: "' + b"x\n" * (SIZE // 2) + b'"',
    "plain lines": b"a: x" + b"\n x" * (SIZE // 3),
    "comments": b"#\n" * (SIZE // 2),
    "question marks": b"? " * (SIZE // 2),
    "anchors": b"".join(b"k%d: &a%d 1\n" % (number, number) for number in range(SIZE // 14)),
    "one long word": b"a" * SIZE,
    "backticks": b"`" * SIZE,
    "fences": b"```\n" * (SIZE // 4),
    "hidden": b"<!--" * (SIZE // 4),
    "commands": b"/assay run a=b\n" * (SIZE // 15),
    "a long command": b"/assay " + b"run " * (SIZE // 4),
    "surrogates": b"\xed\xa0\x80" * 1000,
    "zero bytes": b"\0" * SIZE,
    "lines": b"\n" * SIZE,
    "hunks far apart": b"".join(
        b"--- a/%d\n+++ b/%d\n@@ -999999 +999999 @@\n-a\n+b\n" % (number, number)
        for number in range(SIZE // 55)
    ),
    "a hunk of many digits": b"--- a\n+++ b\n@@ -" + b"9" * 5000 + b" +1 @@\n",
    "a hunk without end": b"--- a\n+++ b\n@@ -1,999999 +1,999999 @@\n" + b"\\\n" * (SIZE // 2),
    "paths": b"diff --git " + b"a/" * (SIZE // 2),
    "tags": b"".join(b"- !!python/object:os.system 1\n" for _ in range(SIZE // 32)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_answered_in_bounded_time(name: str) -> None:
    for parser in PARSERS:
        began = time.process_time()
        attempt(parser, HOSTILE[name])
        assert time.process_time() - began < LIMIT_S, parser.__name__


@given(text=st.text(max_size=600))
@example("/assay mute op=a until=999999999h")
@example("/assay mute op=a until=9999-12-31")
@example("/assay run budget=999999999.999h")
@settings(deadline=None)
def test_commands_convert_their_arguments_or_say_what_is_wrong(text: str) -> None:
    from bot.commands import argument_types

    for line in (text, f"/assay {text}"):
        parse(line, verbs())
    for converter in (
        argument_types.number,
        argument_types.sha,
        argument_types.glob,
        argument_types.names,
        argument_types.releases,
        argument_types.revision,
        lambda value: argument_types.until(value, AT),
    ):
        value: Any = text.rpartition("=")[2]
        try:
            converter(value)
        except ValueError:
            continue


@pytest.mark.parametrize(
    ("content", "file", "why"),
    [
        (b"openvino==2024.0.0\n" + b"#" * MAX_BYTES, "requirements.txt", f"longer than {MAX_BYTES} bytes"),
        (
            b"[tool]\n" + b".".join([b"a"] * (MAX_KEY_PARTS + 2)) + b" = 1\n",
            "pyproject.toml",
            f"more than {MAX_KEY_PARTS} parts",
        ),
    ],
)
def test_files_beyond_a_bound_are_refused(content: bytes, file: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        find_pins(content, file, ["openvino"])


def test_a_requirement_beyond_its_bound_pins_nothing() -> None:
    text = "openvino==2024.0.0; " + " or ".join(["python_version > '3'"] * (MAX_REQUIREMENT // 20))
    [pin] = find_pins(text.encode(), "requirements.txt", ["openvino"])
    assert pin.version is None
    [pin] = find_pins(text[:41].strip().encode(), "requirements.txt", ["openvino"])
    assert pin.version == "2024.0.0"
