"""Patterns over texts of compilers and foreign files take steps linear in the text's length."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from bot.campaigns.classify import out_of_reach
from bot.config.pins import find_pins
from bot.errors import ConfigError
from bot.reports import text as report_text
from bot.toolchains import unreachable_sources
from fuzzing import backends, compiler_messages, exhausted_resources
from fuzzing.oracles import out_of_memory
from fuzzing.triage import native_stack, signature, similar_failures, title
from tests.hostile_texts import UNITS, repeat
from tests.regex_steps import count_steps

LENGTH = 64
#: Steps a character that any pattern may take, of whatever length the text is.
CHEAP = 12
#: Modules whose patterns search what others wrote
MODULES: tuple[ModuleType, ...] = (
    *(compiler_messages, native_stack, signature, similar_failures, title, out_of_memory, report_text),
    *(exhausted_resources, out_of_reach, unreachable_sources),
)
#: Patterns that are tried at one position only, and so need not be linear at all of them together.
ANCHORED = {compiler_messages._TRAILER}


def searched_patterns() -> dict[str, re.Pattern[str]]:
    found = {
        f"{module.__name__}.{name}": value
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and value not in ANCHORED
    }
    rules = (*compiler_messages.WRAPPERS, *compiler_messages.VARIABLE_PARTS, *native_stack._RUNTIME_MESSAGES)
    found.update((rule[0], re.compile(rule[0])) for rule in rules)
    for name in backends.names():
        backend = backends.get(name)
        texts = [*(message for _, message, _ in backend.unsupported), *backend.sticky]
        found.update((f"{name}: {text}", re.compile(text)) for text in texts)
    return found


@pytest.mark.parametrize(
    "pattern", [pytest.param(item, id=name) for name, item in searched_patterns().items()]
)
def test_twice_the_text_takes_twice_the_steps(pattern: re.Pattern[str]) -> None:
    slow = {}
    for unit in UNITS:
        once = _steps(pattern, repeat(unit, LENGTH))
        if once > CHEAP * LENGTH and (twice := _steps(pattern, repeat(unit, 2 * LENGTH))) > 2.6 * once:
            slow[unit] = (once, twice)
            break
    assert slow == {}


@pytest.mark.parametrize(
    ("text", "unit"), [("a+b", "a"), ("(?m)(?:^a+\n)+-", "a\n"), ("'[^\n]*?' of", "'"), ("(?:ab?)*c", "ab")]
)
def test_quadratic_patterns_are_recognized(text: str, unit: str) -> None:
    once, twice = (_steps(re.compile(text), repeat(unit, length)) for length in (LENGTH, 2 * LENGTH))
    assert twice > 3.2 * once > CHEAP * LENGTH


def _steps(pattern: re.Pattern[str], text: str) -> int:
    return count_steps(pattern.pattern, pattern.flags & ~re.UNICODE, text, limit=1_000 * len(text))


@pytest.mark.parametrize("unit", UNITS)
def test_a_message_keeps_its_meaning_in_hostile_company(unit: str) -> None:
    """Whatever surrounds it, the result is bounded."""
    parsed = compiler_messages.parse_message(repeat(unit, 200))
    assert len(parsed.template) <= compiler_messages.MAX_TEMPLATE


def test_a_key_without_its_beginning_is_redacted() -> None:
    text = "it said:\n" + "AbC1\n" * 3 + "-----END RSA PRIVATE KEY----- x\nAbC1\nrest"
    assert report_text.clean(text) == "it said:\n[redacted] x\nAbC1\nrest"
    assert report_text.clean("x-eyJ" + "a" * 9 + "." + "b" * 9 + ".c y") == "[redacted] y"


def test_a_long_dotted_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="a key of more than"):
        find_pins(b"a." * 20_000 + b"a = 1", "pyproject.toml", ["tvm"])
