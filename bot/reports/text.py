"""Filters that make untrusted text safe to publish.

Messages, logs, names and tracebacks come from compilers and from other people's tests. Unfiltered, they could
mention people, link other issues, hide content or leak a secret. Each place in the output has one filter:

    clean         the first part of every other filter: no control characters, secrets or home folders
    redact_paths  our own messages, without the folders of this machine
    plain         one line of Markdown text
    escaped       one line of HTML within Markdown
    code          an inline code span; cell, the same in a table
    fence         a fenced block
    comment       lines of a Python comment
    cut           a shorter text that ends in an ellipsis

Every filter takes time linear in the length of its input, because a regular expression holds the GIL and
blocks the thread that answers webhooks. So no pattern may search for something after an unbounded repetition
that can start at each character.
"""

from __future__ import annotations

import re
import unicodedata

ZERO_WIDTH_SPACE = "\u200b"  # breaks a mention for GitHub, invisible to readers
REDACTED = "[redacted]"

# Format characters hide or reorder text (CVE-2021-42574); surrogates are not valid text.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")

_SECRETS = re.compile(
    r"""
      -----BEGIN[ ][A-Z0-9 ]*KEY(?:[ ]BLOCK)?-----            # a private key …
        (?:.*?-----END[ ][A-Z0-9 ]*KEY(?:[ ]BLOCK)?-----|.*)  # … to its end, or to the end of the text
    | gh[opsur]_[A-Za-z0-9_]{16,}                             # GitHub's own tokens
    | github_pat_[A-Za-z0-9_]{16,}
    | glpat-[A-Za-z0-9_-]{16,}
    | (?:AKIA|ASIA|AROA)[A-Z0-9]{16}                          # AWS access keys
    | xox[abeoprs]-[A-Za-z0-9-]{10,}                          # Slack
    | hf_[A-Za-z0-9]{20,}                                     # Hugging Face
    | pypi-[A-Za-z0-9_-]{16,}                                 # PyPI
    | (?<![A-Za-z0-9])npm_[A-Za-z0-9]{20,}
    | nvapi-[A-Za-z0-9_-]{20,}                                # NVIDIA
    | AIza[A-Za-z0-9_-]{35}                                   # Google
    | (?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}                   # OpenAI and others
    | (?<![A-Za-z0-9_-])(?:(?!eyJ)[A-Za-z0-9_-])*+            # JSON web tokens
        eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*
    | (?i:authorization|x-api-key|cookie)["']?[ \t]*[:=][^\n]*
    | (?i:bearer)[ \t]+[A-Za-z0-9._~+/=-]{8,}
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)                         # user:password in a URL
    """,
    re.VERBOSE | re.DOTALL,
)
#: The end of a private key, and a line of one; the key's beginning may have been cut off.
_KEY_END = re.compile(r"-----END [A-Z0-9 ]*KEY(?: BLOCK)?-----")
_KEY_LINE = re.compile(r"…?[A-Za-z0-9+/=]+")
_HOMES = re.compile(r"(?<![\w~.-])(?:/home/[^/\s:\"']+|/Users/[^/\s:\"']+|/root)(?=[/\s:\"']|$)")
_WINDOWS_HOMES = re.compile(r"\b[A-Za-z]:\\{1,2}Users\\{1,2}[^\\\s:\"']+")

#: Absolute paths in our own messages; trailing punctuation belongs to the sentence.
_FILES = re.compile(r"file://\S*[\w/-]|(?<![\w.:/])/(?:[\w.@+-]+/)+[\w.@+-]*[\w/-]")

#: Prefixes of everything that GitHub turns into a link.
_AUTOLINKS = re.compile(r"@(?=\S)|#(?=\d)|gh-(?=\d)|:(?=//)|www(?=\.)", re.IGNORECASE)
_MARKUP = re.compile(r"([\\`*_{}\[\]()|~!#$^])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LINE_STARTS = re.compile(r"^(\s*\d*)([-+=.)])")


def clean(text: str) -> str:
    """`text` without control characters, secrets and home folders; its lines and tabs are kept."""
    text = _NEWLINES.sub("\n", _ESCAPES.sub("", text))
    if text.isascii():  # the usual case, ten times as fast
        text = _ASCII_CONTROLS.sub("", text)
    else:
        text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE)
    text = _redact_truncated_keys(_SECRETS.sub(REDACTED, text))
    return _WINDOWS_HOMES.sub("~", _HOMES.sub("~", text))


def _redact_truncated_keys(text: str) -> str:
    """Redacts private keys whose first lines were cut off: the lines of base64 above an END line."""
    if "-----END " not in text:
        return text
    kept: list[str] = []
    for line in text.split("\n"):
        end = _KEY_END.match(line)
        lines = len(kept)
        while end and kept and _KEY_LINE.fullmatch(kept[-1]):
            kept.pop()
        kept.append(REDACTED + line[end.end() :] if end and len(kept) < lines else line)
    return "\n".join(kept)


def redact_paths(text: str) -> str:
    """One of our own messages without the folders of this machine."""
    return _FILES.sub("a file of the service", text)


def one_line(text: str) -> str:
    """`clean` text on one line, with single spaces."""
    return " ".join(clean(text).split())


def plain(text: str) -> str:
    """One line of Markdown that shows `text`: no markup, mention, link or reference."""
    text = _break_links(one_line(text)).translate(_ENTITIES)
    return _LINE_STARTS.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))


def escaped(text: str) -> str:
    """One line of HTML within Markdown, such as a `<summary>`, where backslashes escape nothing."""
    return _break_links(one_line(text)).translate(_ENTITIES)


def title(text: str, limit: int) -> str:
    """`text` as the title of an issue or check run, which GitHub shows without Markdown."""
    return _break_links(cut(one_line(text), limit)).replace("`", "'")


def _break_links(text: str) -> str:
    """Inserts a zero-width space wherever GitHub would make a link or notify somebody.

    Covers the autolinks of GitHub Flavored Markdown (section 6.9: `www.`, `scheme://`, e-mail addresses, also
    with `mailto:` and `xmpp:`) and GitHub's mentions, `#1` and `GH-1`, whatever character precedes. Commit
    ids stay: their links notify nobody.
    """
    return _AUTOLINKS.sub(rf"\g<0>{ZERO_WIDTH_SPACE}", text)


def code(text: str) -> str:
    """`text` as an inline code span, in which GitHub links nothing."""
    text = one_line(text) or " "
    marks = "`" * (1 + _longest_run(text))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def cell(text: str) -> str:
    """`code` for a table's cell, where a bar must be escaped."""
    return code(text).replace("|", "\\|")


def fence(text: str, language: str = "text") -> str:
    """`text` as a fenced block whose fence is longer than any in it."""
    return verbatim(clean(text).strip("\n"), language)


def verbatim(text: str, language: str) -> str:
    """`text` unchanged as a fenced block; for reproducers, which users copy."""
    marks = "`" * max(3, 1 + _longest_run(text))
    return f"{marks}{language}\n{text.rstrip(chr(10))}\n{marks}"


def comment(text: str) -> str:
    """`text` as lines of a Python comment."""
    return "\n".join(f"# {line}".rstrip() for line in clean(text).split("\n"))


def cut(text: str, limit: int) -> str:
    """At most `limit` characters of `text`; a text that was cut ends in "…"."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def cut_start(text: str, limit: int) -> str:
    """The last `limit` characters of `text`, for logs; begins with "…" if cut."""
    return text if len(text) <= limit else "…" + text[len(text) - limit + 1 :]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
