"""The grammar: which lines are commands, and what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import argument_types
from bot.commands.grammar import MAX_COMMANDS, MAX_LINE, Argument, InvalidCommand, ParsedCommand, Verb, parse

VERBS = {
    verb.name: verb
    for verb in (
        Verb("rerun", "Test it again."),
        Verb(
            "run",
            "Test it.",
            (
                Argument("source", "NAMES", argument_types.names),
                Argument("budget", "DURATION", argument_types.duration),
            ),
        ),
        Verb(
            "dup",
            "It is known.",
            (Argument("issue", "#N", argument_types.number, required=True, positional=True),),
        ),
        Verb("invalid", "It is no bug.", (Argument("reason", "REASON", str, remainder=True),)),
    )
}


def call(body: str) -> ParsedCommand:
    (found,) = parse(body, VERBS)
    assert isinstance(found, ParsedCommand), found
    return found


def why(body: str) -> str:
    (found,) = parse(body, VERBS)
    assert isinstance(found, InvalidCommand), found
    return found.why


@pytest.mark.parametrize(
    ("body", "verb", "given"),
    [
        ("/assay rerun", "rerun", {}),
        ("Thanks!\r\n   /assay RERUN  \r\nbye", "rerun", {}),
        (
            "/assay run budget=5m source=onnx-node-tests,isra",
            "run",
            {"budget": 300, "source": ["onnx-node-tests", "isra"]},
        ),
        ("/assay dup #12", "dup", {"issue": 12}),
        ("/assay dup 12", "dup", {"issue": 12}),
        ("/assay invalid", "invalid", {}),
        ("/assay invalid it is = meant  so", "invalid", {"reason": "it is = meant  so"}),
        ("/assay rerun <!-- and nothing else -->", "rerun", {}),
        ("```\n<!--\n```\n/assay rerun", "rerun", {}),
    ],
)
def test_what_is_said(body: str, verb: str, given: dict[str, object]) -> None:
    found = call(body)
    assert (found.verb, found.values) == (verb, given)


@pytest.mark.parametrize(
    "body",
    [
        "> /assay rerun",
        "I say /assay rerun",
        "    /assay rerun",
        "`/assay rerun`",
        "```\n/assay rerun\n```",
        "~~~~ sh\n/assay rerun\n~~~\n/assay rerun\n~~~~",
        "```\n/assay rerun",
        "<!-- \n/assay rerun\n-->",
        "<!-- \n-->/assay rerun",
        "<!--\n/assay rerun",
        "/assays rerun",
        "- /assay rerun",
        "",
    ],
)
def test_what_is_no_command(body: str) -> None:
    assert parse(body, VERBS) == []


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("/assay", "name a command: `dup`, `invalid`, `rerun`, `run`"),
        ("/assay rerum", "did you mean `/assay rerun`?"),
        ("/assay x`y", "`x?y` is not a command; there are `dup`, `invalid`, `rerun`, `run`"),
        ("/assay run budgt=5m", "`run` does not take `budgt=5m`; did you mean `budget`?"),
        ("/assay run budget=5", "`budget` is not a duration; write a number and s, m or h"),
        ("/assay run budget=5m budget=6m", "`budget` is given twice"),
        (
            "/assay run fast",
            "`run` does not take `fast`; write `/assay run [source=NAMES] [budget=DURATION]`",
        ),
        ("/assay dup", "`issue` is missing; write `/assay dup #N`"),
        ("/assay dup #0", "must be the number of an issue, such as #12; it is `#0`"),
        (f"/assay invalid {'x' * MAX_LINE}", f"a command has {MAX_LINE} characters at most"),
    ],
)
def test_mistakes_say_what_to_write(body: str, output: str) -> None:
    assert output in why(body)


def test_several_are_taken_in_order_up_to_a_bound() -> None:
    found = parse("/assay rerun\n/assay dup #1\n", VERBS)
    assert [one.verb for one in found if isinstance(one, ParsedCommand)] == ["rerun", "dup"]
    many = parse("/assay rerun\n" * 100, VERBS)
    assert len(many) == MAX_COMMANDS + 1
    assert isinstance(many[-1], InvalidCommand)


PIECES = ("/assay", " ", "\n", "run", "dup", "#1", ">", "`", "~", "<!--", "-->", "=", "é", "x")
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)


@given(TEXTS | st.text())
def test_whatever_is_written_it_answers(body: str) -> None:
    assert len(parse(body, VERBS)) <= MAX_COMMANDS + 1


@given(TEXTS)
def test_what_is_quoted_or_in_a_fence_is_no_command(body: str) -> None:
    assert parse("\n".join(f"> {line}" for line in body.splitlines()), VERBS) == []
    fence = "`" * (3 + body.count("`"))
    assert parse(f"{fence}\n{body}\n{fence}", VERBS) == []


@given(
    st.lists(
        st.sampled_from(
            ["/assay rerun", "/assay run budget=5m source=a,b", "/assay dup #7", "/assay invalid why not"]
        ),
        max_size=MAX_COMMANDS,
    )
)
def test_the_text_of_a_command_says_the_same_again(lines: list[str]) -> None:
    found = parse("\n".join(lines), VERBS)
    assert [one.text for one in found] == lines
    assert parse("\n\n".join(one.text for one in found), VERBS) == found
