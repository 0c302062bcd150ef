r"""LaTeX in docstrings as expressions: `\frac{\text{a\_b}}{\text{c}}` is a_b / c."""

from __future__ import annotations

import re

from fuzzing.generate.docter.expressions import is_expression

#: Words of LaTeX that stand for nothing, or for something of Python.
_WORDS = {
    r"\left": "", r"\right": "", r"\,": " ", r"\;": " ", r"\quad": " ", r"\big": "", r"\Big": "",
    r"\times": "*", r"\cdot": "*", r"\ast": "*", r"\lfloor": "floor(", r"\rfloor": ")",
    r"\lceil": "ceil(", r"\rceil": ")", r"\leq": "<=", r"\geq": ">=", r"\le": "<=", r"\ge": ">=",
    r"\neq": "!=", r"\ne": "!=", r"\ldots": "...", r"\dots": "...", r"\cdots": "...", r"\infty": "inf",
}  # fmt: skip
_WORD = re.compile(
    "|".join(re.escape(word) + r"(?![a-zA-Z])" for word in sorted(_WORDS, key=len, reverse=True))
)
_TEXT = re.compile(r"\\(?:text|mathrm|mathit|texttt|operatorname|mathbf)\s*\{([^{}]*)\}")
_SUBSCRIPT = re.compile(r"_\{([^{}]*)\}")
_MATH = re.compile(r":math:`([^`]*)`")


def to_plain_text(latex: str) -> str:
    """LaTeX as plain Python-like text, as far as it is understood."""
    text = latex.replace(r"\_", "_").replace("&", " ").replace(r"\\", " ").replace("{}", "")
    text = _TEXT.sub(lambda match: match[1].strip().replace(" ", "_"), text)
    text = _SUBSCRIPT.sub(lambda match: "_" + re.sub(r"[^\w]+", "_", match[1].replace("\\", "")), text)
    text = _expand_fractions(text)
    text = _WORD.sub(lambda match: _WORDS[match[0]], text)
    return re.sub(r"\s+", " ", text.replace("{", "(").replace("}", ")")).strip()


def _expand_fractions(text: str) -> str:
    r"""`\frac{a}{b}` as `((a)/(b))`, innermost last."""
    while (start := text.find(r"\frac{")) >= 0:
        middle = _find_closing_brace(text, start + 5)
        end = (
            _find_closing_brace(text, middle + 1)
            if middle >= 0 and text[middle + 1 : middle + 2] == "{"
            else -1
        )
        if end < 0:
            return text
        above, below = text[start + 6 : middle], text[middle + 2 : end]
        text = f"{text[:start]}(({above})/({below})){text[end + 1 :]}"
    return text


def _find_closing_brace(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return -1


def strip_markup(text: str) -> str:
    """A sentence with plain math and without roles (`:attr:`, `:class:`)."""
    text = _MATH.sub(lambda match: " " + to_plain_text(match[1]) + " ", text)
    text = re.sub(r":\w+(?::\w+)?:`~?([^`<]*?)(?:\s*<[^>]*>)?`", r"\1", text)
    return re.sub(r"\s+", " ", text).strip()


def to_expression(latex: str) -> str:
    """LaTeX as an expression of constraints, "" if it is none."""
    text = to_plain_text(latex).rstrip(".,;")
    text = re.sub(r"(?<=[\w\])]) (?=\()", "*", text) if re.search(r"[\w\])] \(", text) else text
    return text if text and is_expression(text) else ""
