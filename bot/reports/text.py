"""Untrusted text, made safe to publish.

Messages, logs, names and tracebacks come from compilers and from other people's tests. Published as
they are, they could mention people, link other issues, hide content or leak a secret (DESIGN 7). Each
way out has one filter:

    clean   what every other filter begins with: no control characters, secrets or home folders
    redact_paths  reasons of ours, without the folders of our machine
    plain   a run of Markdown text on one line
    escaped the same where HTML surrounds it
    code    an inline code span; cell, the same in a table
    fence   a fenced block
    comment lines of a Python comment
    cut     a shorter text that says how much is missing
"""

from __future__ import annotations

import re
import unicodedata

ZERO_WIDTH_SPACE = "\u200b"  # what breaks a mention for GitHub and not for the reader
REDACTED = "[redacted]"

# Format characters hide or reorder what people read (CVE-2021-42574); surrogates are no text at all.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")

_SECRETS = re.compile(
    r"""
      -----BEGIN[ ][A-Z0-9 ]*KEY(?:[ ]BLOCK)?-----            # a private key …
        (?:.*?-----END[ ][A-Z0-9 ]*KEY(?:[ ]BLOCK)?-----|.*)  # … to its end, or to ours
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
_KEY_END = re.compile(r"-----END [A-Z0-9 ]*KEY-----")
_KEY_LINE = re.compile(r"…?[A-Za-z0-9+/=]+")
_HOMES = re.compile(r"(?<![\w~.-])(?:/home/[^/\s:\"']+|/Users/[^/\s:\"']+|/root)(?=[/\s:\"']|$)")
_WINDOWS_HOMES = re.compile(r"\b[A-Za-z]:\\{1,2}Users\\{1,2}[^\\\s:\"']+")

#: Where a machine of ours keeps things, in the reasons that we give ourselves; a full stop, a comma or a
#: colon behind it is the sentence's.
_FILES = re.compile(r"file://\S*[\w/-]|(?<![\w.:/])/(?:[\w.@+-]+/)+[\w.@+-]*[\w/-]")

_MARKUP = re.compile(r"([\\`*_{}\[\]()|~!#$^])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LINE_STARTS = re.compile(r"^(\s*\d*)([-+=.)])")


def clean(text: str) -> str:
    """`text` without what may hide, reorder or leak; its lines and tabs are kept."""
    text = _NEWLINES.sub("\n", _ESCAPES.sub("", text))
    if text.isascii():  # nearly always, and ten times as fast
        text = _ASCII_CONTROLS.sub("", text)
    else:
        text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE)
    text = _redact_key_ends(_SECRETS.sub(REDACTED, text))
    return _WINDOWS_HOMES.sub("~", _HOMES.sub("~", text))


def _redact_key_ends(text: str) -> str:
    """`text` without the lines of private keys whose beginnings are missing; each line is read once."""
    if not _KEY_END.search(text):
        return text
    kept: list[str] = []
    for line in text.split("\n"):
        end = _KEY_END.match(line)
        if end is None or not kept or not _KEY_LINE.fullmatch(kept[-1]):
            kept.append(line)
            continue
        while kept and _KEY_LINE.fullmatch(kept[-1]):
            kept.pop()
        kept.append(REDACTED + line[end.end() :])
    return "\n".join(kept)


def redact_paths(text: str) -> str:
    """A reason of ours without the folders of our machine: they are nobody's business."""
    return _FILES.sub("a file of the service", text)


def one_line(text: str) -> str:
    """`clean` text on one line, with single spaces."""
    return " ".join(clean(text).split())


def plain(text: str) -> str:
    """One line of Markdown that shows `text` and does nothing: no markup, mention, link or reference."""
    text = _break_links(one_line(text)).translate(_ENTITIES)
    return _LINE_STARTS.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))


def escaped(text: str) -> str:
    """One line of HTML inside Markdown, such as a `<summary>`, where backslashes escape nothing."""
    return _break_links(one_line(text)).translate(_ENTITIES)


def title(text: str, limit: int) -> str:
    """`text` as an issue's or check run's title, which GitHub shows without Markdown."""
    return _break_links(cut(one_line(text), limit)).replace("`", "'")


def _break_links(text: str) -> str:
    """A zero-width space wherever GitHub would make a link or notify somebody."""
    text = re.sub(r"@(?=[\w-])", f"@{ZERO_WIDTH_SPACE}", text)
    text = re.sub(r"#(?=\d)", f"#{ZERO_WIDTH_SPACE}", text)
    text = re.sub(r"\b(gh)-(?=\d)", rf"\1-{ZERO_WIDTH_SPACE}", text, flags=re.IGNORECASE)
    text = re.sub(r":(?=//)", f":{ZERO_WIDTH_SPACE}", text)
    return re.sub(r"\b(www)\.", rf"\1{ZERO_WIDTH_SPACE}.", text, flags=re.IGNORECASE)


def code(text: str) -> str:
    """`text` as an inline code span; GitHub links nothing in there. For a table's cell see `cell`."""
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
    """Our own `text`, byte for byte, as a fenced block; for reproducers, which must survive pasting."""
    marks = "`" * max(3, 1 + _longest_run(text))
    return f"{marks}{language}\n{text.rstrip(chr(10))}\n{marks}"


def comment(text: str) -> str:
    """`text` as lines of a Python comment."""
    return "\n".join(f"# {line}".rstrip() for line in clean(text).split("\n"))


def cut(text: str, limit: int) -> str:
    """At most `limit` characters of `text`; a text that was cut ends in "…"."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def cut_start(text: str, limit: int) -> str:
    """The last `limit` characters of `text`, where logs say what happened; begins with "…" if cut."""
    return text if len(text) <= limit else "…" + text[len(text) - limit + 1 :]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
