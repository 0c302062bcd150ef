"""Reads shapes in docstrings, such as `(N, C_{in}, *)`, as patterns of tokens."""

from __future__ import annotations

import re

from fuzzing.generate.docter import latex
from fuzzing.generate.docter.expressions import is_expression

Pattern = tuple[str, ...]

_GROUP = re.compile(r"(?<![\w.])`*\(((?:[^()]|\([^()]*\)|\((?:[^()]|\([^()]*\))*\))*)\)")
_SINGLE = re.compile(r"[A-Z]\w*|\*|[a-z]\w*_(features|size|channels)|\d+")
_SERIES = re.compile(r"(\w+?)_?1\s*,\s*(\1_?2\s*,\s*)?(\.\.\.|…)\s*,\s*\1_?\w+")
#: Words after which a sentence is no longer about the parameter's own shape.
_END = re.compile(r"\bwhere\b|\(or\b|\bdescribed\b|\bExample\b|\bDefault\b|, representing|\.\s+[A-Z]")
_TIMES = re.compile(r"\s+\*\s+|\s*\\times\s*|\s*×\s*")
_SAME = re.compile(
    r"(?:of |has |have |with |to )?(?:the )?same (?:shape|size|shape and size)s?(?: and (?:type|dtype))? "
    r"(?:as|with|of) (?:the )?`?\*{0,2}(?P<name>\w+)",
    re.IGNORECASE,
)
_BROADCAST = re.compile(
    r"broadcast(?:able|ed|able to| to| with)?(?: \S+)? (?:to |with )?(?:the )?(?:shape of )?`*(?P<name>\w+)"
)
_RANKS = re.compile(r"(?<![\w-])(?:(\d)|(one|two|three|zero))[ -]?(?:d\b|dim(?:ensional)?\b)", re.IGNORECASE)
_WORDS = {"zero": 0, "one": 1, "two": 2, "three": 3}


def parse_patterns(text: str, *, anywhere: bool = False) -> tuple[Pattern, ...]:
    """The alternative shapes in a description, in order; () for none.

    `text` is a sentence without markup. Unless `anywhere`, words about shape or size must come first: other
    brackets are asides.
    """
    end = _END.search(text)
    text = text[: end.start()] if end else text
    found: list[Pattern] = []
    matches = anywhere
    place = 0
    for match in _GROUP.finditer(text):
        matches = matches or bool(
            re.search(r"shape|size|tensor|case\)", text[place : match.start()], re.IGNORECASE)
        )
        place = match.end()
        pattern = tokenize(match[1]) if matches else None
        if pattern is not None and pattern not in found:
            found.append(pattern)
    return tuple(found)


def tokenize(inside: str) -> Pattern | None:
    """The contents of a shape's brackets as tokens; None if it is not a shape."""
    text = _SERIES.sub("*series", inside.strip())
    if not text:
        return ()
    parts = [part.strip() for part in _split(text)]
    if parts and not parts[-1]:
        parts.pop()  # the comma of a tuple of one
    if len(parts) == 1:
        parts = _TIMES.split(parts[0])
        if len(parts) == 1 and not _SINGLE.fullmatch(parts[0]):
            return None
    read = [_token(part) for part in parts]
    return tuple(token for token in read if token is not None) if None not in read else None


def _token(part: str) -> str | None:
    part = part.strip(" `")
    if part in ("*", "...", "…"):
        return "*"
    if re.fullmatch(r"\*_?\w+", part):
        return "*" + part[1:].lstrip("_")
    part = re.sub(r"\\prod\s*\(?(\w+)\)?", r"prod(\1)", part)
    part = re.sub(r"(?<=\d)(?=[A-Za-z])", "*", part)  # 2H_in
    if not is_expression(part) or re.search(r"[<>=]", part) or '"' in part or "'" in part:
        return None
    return _simple(part)


def _simple(text: str) -> str:
    """((in_channels)/(groups)) without redundant brackets."""
    text = re.sub(r"\((\w+)\)(?!\()", r"\1", text) if not re.search(r"\w\(", text) else text
    return text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for char in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return [*parts, current]


def same_as(text: str, names: frozenset[str]) -> str:
    """The parameter whose shape it has by the description, or ""."""
    match = _SAME.search(text)
    return _known(match["name"], names) if match else ""


def broadcasts_to(text: str, names: frozenset[str]) -> str:
    """The parameter it broadcasts to by the description, or ""."""
    for match in _BROADCAST.finditer(text):
        if found := _known(match["name"], names):
            return found
    return ""


def _known(name: str, names: frozenset[str]) -> str:
    """`name` among `names`, ignoring case; docstrings write "the inputs" and "Input"."""
    folded = {known.lower(): known for known in names}
    for spelled in (name, name.rstrip("s"), {"self": "input"}.get(name, "")):
        if spelled.lower() in folded:
            return folded[spelled.lower()]
    return ""


def parse_ranks(text: str) -> tuple[int, int] | None:
    """The least and the most dimensions in a description: "1-D or 2-D", "vector", "matrix"."""
    found = [int(number) if number else _WORDS[word.lower()] for number, word in _RANKS.findall(text)]
    head = text[:60].lower()
    if not found and re.search(r"\bbatch(es)? of matrices", head):
        found = [3]
    elif not found and re.search(r"\b(vector)\b", head) and "vectors" not in head:
        found = [1]
    elif not found and re.search(r"\bmatrix\b", head):
        found = [2]
    return (min(found), max(found)) if found else None


def parse_sentences(text: str, names: frozenset[str]) -> dict[str, Pattern]:
    """Shapes in running text: "If input is a (n * m) tensor, vec is a 1-D tensor of size m"."""
    found: dict[str, Pattern] = {}
    subject = r"\b(?P<name>" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")\b"
    verb = r" (?:is|must be|will be|has to be|should be|to be)(?: of (?:size|shape))?"
    fits = r"(?P<fits> broadcastable with)?"
    tensor = r" (?:an? )?(?:tensor of (?:size|shape) |matrix of size |batch of |.{0,3})?\((?P<shape>[^()]*)\)"
    vector = r" an? (?:1-?D tensor|vector) of size (?P<size>\w+)"
    for match in re.finditer(f"{subject}{verb}{fits}(?:{tensor}|{vector})", text):
        pattern = tokenize(match["shape"]) if match["shape"] is not None else (match["size"],)
        if not pattern or match["name"] in found:
            continue
        found[match["name"]] = (f"broadcast({', '.join(pattern)})",) if match["fits"] else pattern
    return found


def parse_definitions(text: str) -> list[tuple[str, str]]:
    """Symbols that a Shape section defines by parameters: H_in = in_features."""
    found = []
    for line in re.split(r"\n|,|\band\b|\.\s|\\\\", re.sub(r":math:|`", " ", text)):
        plain = latex.to_plain_text(line).strip()
        match = re.fullmatch(r"[^=]*?\b(?P<symbol>[A-Z]\w*)\s*=\s*(?P<expression>[\w\[\]]+)\s*\.?", plain)
        if match and is_expression(match["expression"]):
            found.append((match["symbol"], match["expression"]))
    return found


def parse_formulas(text: str) -> list[tuple[str, str]]:
    """Output lengths that a Shape section computes: L_out and its formula, as expressions."""
    found = []
    for block in re.split(r"\.\. math::|:math:`|\n\s*\n", text):
        name, equals, formula = block.partition("=")
        symbol = latex.to_plain_text(name)
        if equals and re.fullmatch(r"[A-Z]_out", symbol):
            spelled = latex.to_expression(re.sub(r"\n\s*", " ", formula.split("`")[0]))
            if spelled:
                found.append((symbol, spelled))
    return found
