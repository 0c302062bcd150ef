"""Properties of the filters between a compiler's text and GitHub."""

from __future__ import annotations

import html
import re
import time
import tokenize
import unicodedata
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.reports import text

HOSTILE = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            [
                "@octocat",
                "@org/team",
                "#1",
                "GH-7",
                "owner/repo#12",
                "https://github.com/o/r/issues/3",
                "www.example.org",
                "<img src=x onerror=alert(1)>",
                "<!-- assay:0123456789abcdef -->",
                "-->",
                "```",
                "`````python",
                "~~~",
                "\r",
                "\r\n",
                "\x1b[31mred\x1b[0m",
                "\u202eevil\u202c",
                "\u2066",
                "\u200b",
                "\ud800",
                "\x85",
                "\u2028",
                "|",
                "\\",
                "[a](b)",
                "$x$",
                '"""',
            ]
        ),
    ),
    max_size=8,
).map("".join)

SECRETS = [
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
    "ghs_0123456789abcdefghijABCDEFGHIJ012345",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "pypi-AgEIcHlwaS5vcmcCJGJmNGQ",
    "nvapi-0123456789abcdefghijABCDEF",
    "AIzaSyA0123456789abcdefghijABCDEFGHIJ01",
]
FILTERS: list[Callable[[str], str]] = [
    text.clean,
    text.plain,
    text.code,
    text.fence,
    text.comment,
    text.cell,
    text.escaped,
    lambda raw: text.title(raw, 4096),
]


def visible(shown: str) -> str:
    return shown.replace(text.ZERO_WIDTH_SPACE, "")


@given(HOSTILE)
def test_clean_leaves_only_what_people_see(raw: str) -> None:
    for char in text.clean(raw):
        assert char in "\n\t" or unicodedata.category(char)[0] in "LMNPSZ"


@given(HOSTILE)
@example("@octocat and @org/team, owner/repo#12, #1 and GH-7 at https://github.com/o/r/issues/3")
def test_plain_text_mentions_nobody_and_links_nothing(raw: str) -> None:
    for shown in (text.plain(raw), text.escaped(raw), text.title(raw, 4096)):
        assert "\n" not in shown
        assert not re.search(r"@[\w-]", shown)
        assert not re.search(r"#\d", shown)
        assert not re.search(r"\bgh-\d", shown, re.IGNORECASE)
        assert "://" not in shown
        assert not re.search(r"\bwww\.", shown, re.IGNORECASE)


#: Everything that GitHub Flavored Markdown (section 6.9) and GitHub itself turn into a link.
LINKS = [
    "www.example.org",
    "WWW.example.org",
    "http://example.org",
    "https://example.org/a?b=c",
    "HTTPS://example.org",
    "ftp://example.org",
    "foo@example.org",
    "a.b-c_d+e@example.org",
    "mailto:foo@example.org",
    "xmpp:foo@example.org/bar",
    "<https://example.org>",
    "<foo@example.org>",
    "foo@.example.org",
    "@octocat",
    "@_octocat",
    "#12",
    "o/r#12",
    "o/r@0123456789abcdef0123456789abcdef01234567",
    "GH-12",
    "gh-12",
]
LINKED = re.compile(r"www\.|(?:https?|ftp)://|[\w.+-]@[\w.-]|@\w|#\d|gh-\d", re.IGNORECASE)


@pytest.mark.parametrize("link", LINKS)
@given(before=st.sampled_from(["", *" (*_~[{:.,;/\\'\"<>|`#@-a1é"]), after=st.sampled_from(["", *" )*_~.,/"]))
def test_no_form_of_link_survives_whatever_stands_around_it(link: str, before: str, after: str) -> None:
    assert LINKED.search(link)
    for shown in (text.plain, text.escaped, lambda raw: text.title(raw, 4096)):
        assert not LINKED.search(shown(before + link + after).replace("\\", ""))


@given(HOSTILE)
@example("_www.example.org")
@example("- a\n+ b\n1. c\n=== \n# d")
def test_a_renderer_of_markdown_sees_one_paragraph_of_plain_text(raw: str) -> None:
    (opening, inline, closing) = MarkdownIt("commonmark").parse(f"x {text.plain(raw)}")
    assert (opening.type, closing.type) == ("paragraph_open", "paragraph_close")
    assert {token.type for token in inline.children or ()} <= {"text", "text_special"}


#: Texts that make a backtracking pattern quadratic: pieces that begin a match, repeated.
PIECES = [
    "a\n",
    "=\n",
    "-----BEGIN ",
    "-----END ",
    "KEY",
    "-----BEGIN KEY-----",
    "-----END KEY-----\n",
    "eyJ",
    "eyJaaaaaaaa.",
]
PIECES += [
    "authorization",
    "bearer ",
    "://",
    "a:",
    "a@",
    "/home/",
    "C:\\Users\\",
    "\x1b[",
    "\x1b]",
    "file://",
    "/a",
    "/.",
    "`",
]
PIECES += ["www.", "gh-", "#1", " ", "1", "sk-", "nvapi-", "…", "\u202e", "\r"]


@pytest.mark.parametrize("piece", PIECES)
def test_every_filter_is_quick_with_a_repeated_piece(piece: str) -> None:
    check_speed(piece * (16_384 // len(piece)))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4), st.lists(st.sampled_from(PIECES), max_size=3)
)
def test_every_filter_is_quick_with_hostile_text(repeated: list[str], last: list[str]) -> None:
    piece = "".join(repeated)
    check_speed(piece * (16_384 // len(piece)) + "".join(last))


def check_speed(raw: str) -> None:
    """Fails if a filter takes more than 0.5 s of processor time for 16 kB; 0.03 s is usual."""
    for shown in [*FILTERS, text.redact_paths]:
        start = time.thread_time()
        shown(raw)
        assert time.thread_time() - start < 0.5


@given(HOSTILE)
def test_plain_text_is_no_markup(raw: str) -> None:
    shown = text.plain(raw)
    assert "<" not in shown
    assert ">" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|$]", shown)


@given(HOSTILE)
def test_escaped_text_is_its_own_html(raw: str) -> None:
    assert visible(html.unescape(text.escaped(raw))) == visible(text.one_line(raw))


@given(HOSTILE)
def test_a_cell_has_no_bar_of_its_own(raw: str) -> None:
    shown = text.cell(raw)
    assert shown.count("|") == shown.count("\\|")


@given(HOSTILE)
def test_verbatim_text_survives_and_cannot_leave_its_block(raw: str) -> None:
    raw = raw.replace("\r", "") + "x"
    first, *body, last = text.verbatim(raw, "python").split("\n")
    assert first == last + "python"
    assert "\n".join(body) == raw
    assert not any(re.match(rf" {{0,3}}`{{{len(last)},}}\s*$", line) for line in body)


@given(HOSTILE)
def test_plain_text_reads_as_before(raw: str) -> None:
    shown = visible(re.sub(r"\\(?=[^\w\s]|[\d_])", "", text.plain(raw.replace("\\", ""))))
    shown = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert shown == text.one_line(raw.replace("\\", ""))


@given(HOSTILE)
def test_a_fence_is_closed_only_by_its_own_end(raw: str) -> None:
    block = text.fence(raw)
    first, *body, last = block.split("\n")
    assert first == last + "text"
    assert not any(re.match(rf" {{0,3}}`{{{len(last)},}}\s*$", line) for line in body)
    assert "\n".join(body) == text.clean(raw).strip("\n")


@given(HOSTILE)
def test_a_code_span_is_closed_only_by_its_own_end(raw: str) -> None:
    span = text.code(raw)
    marks = re.match("`+", span)
    assert marks is not None
    inside = span[marks.end() : -marks.end()]
    assert span.endswith(marks.group())
    assert marks.group() not in inside
    assert "\n" not in span


@given(HOSTILE)
def test_a_comment_is_nothing_but_comment(raw: str) -> None:
    source = text.comment(raw) + "\n"
    tokens = tokenize.tokenize(BytesIO(("# first\n# second\n" + source).encode()).readline)
    quiet = {tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    assert {token.type for token in tokens} <= quiet


@pytest.mark.parametrize("secret", SECRETS)
@given(before=HOSTILE, after=HOSTILE)
def test_no_filter_lets_a_secret_through(secret: str, before: str, after: str) -> None:
    raw = f"{before} {secret} {after}"
    for shown in FILTERS:
        assert secret not in visible(shown(raw))


@pytest.mark.parametrize("hidden", ["\u200b", "\x00", "\u202e", "\x1b[0m"])
def test_a_secret_cannot_hide_behind_what_is_removed(hidden: str) -> None:
    secret = SECRETS[0]
    assert secret not in text.clean(secret[:9] + hidden + secret[9:])


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("Authorization: Basic dXNlcjpwYXNz\nnext", "[redacted]\nnext"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nok", "[redacted]\nok"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", "[redacted]"),
        ("…cret\nb3BlbnNz\n-----END RSA PRIVATE KEY-----\nok", "[redacted]\nok"),
        (
            "…cret\nnot base64\n-----END RSA PRIVATE KEY-----",
            "…cret\nnot base64\n-----END RSA PRIVATE KEY-----",
        ),
        ("x_eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl,", "[redacted],"),
        ("cloning https://me:pass@example.org/x", "cloning https://[redacted]@example.org/x"),
        ("File /home/jane/src/a.py:3", "File ~/src/a.py:3"),
        ("/Users/jane/a and C:\\Users\\jane\\b", "~/a and ~\\b"),
        ("/root/.cache/x '/root'", "~/.cache/x '~'"),
        ("/rootfs/home/jane", "/rootfs/home/jane"),
        ("key sk-proj-0123456789abcdefghij!", "key [redacted]!"),
        ("token npm_0123456789abcdefghij!", "token [redacted]!"),
        ("the task-queue-of-all-the-workers-here", "the task-queue-of-all-the-workers-here"),
    ],
)
def test_what_is_redacted(raw: str, shown: str) -> None:
    assert text.clean(raw) == shown


@given(HOSTILE, st.integers(1, 60))
def test_cutting_keeps_the_limit(raw: str, limit: int) -> None:
    assert len(text.cut(raw, limit)) <= limit
    assert len(text.cut_start(raw, limit)) <= limit
    assert text.cut(raw, len(raw) + 1) == raw == text.cut_start(raw, len(raw) + 1)
