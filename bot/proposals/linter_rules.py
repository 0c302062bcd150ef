"""The rules of ruff and flake8 that a repository configures for a file, as options of ruff.

Flake8's own rules and those of its plugins are run through ruff as far as it has them. Its codes are given to
ruff one by one, because pycodestyle's rules about blanks are previews there, which a prefix does not select.
"""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bot.errors import InfrastructureError
from bot.proposals.code_style import read_ruff
from bot.proposals.globs import excludes, fits
from bot.proposals.tree import Tree

_TIMEOUT_S = 60.0
_FLAKE8_FILES = (".flake8", "setup.cfg", "tox.ini")
#: Rules that ruff selects by itself (docs.astral.sh/ruff/rules).
_RUFF_DEFAULT = ("E4", "E7", "E9", "F")
#: What flake8 selects and ignores by itself (flake8.pycqa.org, "select" and "ignore").
_FLAKE8_DEFAULT = ("E", "F", "W", "C90")
_FLAKE8_IGNORED = ("E121", "E123", "E126", "E226", "E24", "E704", "W503", "W504")
_LETTERS = re.compile(r"[A-Z]*")
_CODE = re.compile(r"[A-Z]{1,4}[0-9]{0,4}")
#: Bugbear's line length allows a tenth more than the limit; its rules B9 are off unless they are named.
_LONG_LINE, _LONGER = "B950", 1.1


@dataclass(frozen=True)
class Rules:
    """Rules of one linter for one file.

    named    what people select, for the report
    options  of ruff, the selection included
    ignored  beginnings of codes whose findings do not count for this file
    renamed  ruff's code → the linter's
    """

    linter: str
    named: tuple[str, ...]
    options: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def ruff_rules(tree: Tree, path: str) -> Rules | None:
    """The rules of ruff's settings; None without such settings, or if they leave the file out."""
    found = read_ruff(tree, path)
    if found is None:
        return None
    folder, given = found
    own = path.removeprefix(f"{folder}/") if folder != "." else path
    if excludes(own, _strings(given, "exclude", "extend-exclude")):
        return None
    if (included := _strings(given, "include")) and not fits(own, included):
        return None
    lint = {**given, **_section(given, "lint")}  # the newer section counts more
    selected = (*(_strings(lint, "select") or _RUFF_DEFAULT), *_strings(lint, "extend-select"))
    ignored = _strings(lint, "ignore", "extend-ignore")
    options = ["--select", ",".join(selected), *(("--ignore", ",".join(ignored)) if ignored else ())]
    options += _ruff_options(given, lint)
    per_file = _section(lint, "per-file-ignores") | _section(lint, "extend-per-file-ignores")
    skipped = [code for pattern, codes in per_file.items() if _names(pattern, own) for code in codes]
    return Rules("ruff check", selected, tuple(options), tuple(map(str, skipped)))


def _ruff_options(given: Mapping[str, Any], lint: Mapping[str, Any]) -> Iterator[str]:
    width = given.get("line-length")
    yield from ("--line-length", str(width if isinstance(width, int) else 88))
    if given.get("preview") is True or lint.get("preview") is True:
        yield "--preview"
    if lint.get("explicit-preview-rules") is True:
        yield from ("--config", "lint.explicit-preview-rules=true")
    if re.fullmatch(r"py3\d{1,2}", str(given.get("target-version"))):
        yield from ("--target-version", str(given["target-version"]))
    if known := _strings(_section(lint, "isort"), "known-first-party"):
        yield from ("--config", f"lint.isort.known-first-party={json.dumps(known)}")


def flake8_rules(tree: Tree, path: str) -> Rules | None:
    """The rules of flake8's settings; None without such settings, or if they leave the file out."""
    given = _flake8_settings(tree)
    if given is None or excludes(path, (*_words(given, "exclude"), *_words(given, "extend-exclude"))):
        return None
    selected = (*(_words(given, "select") or _FLAKE8_DEFAULT), *_words(given, "extend-select"))
    ignored = (
        *(_words(given, "ignore") if "ignore" in given else _FLAKE8_IGNORED),
        *_words(given, "extend-ignore"),
    )
    complexity = _number(given, "max-complexity", 0)
    known = [one for one in _ruff_codes() if _counts(one, selected, ignored)]
    codes = [one for one in known if complexity or one != "C901"]
    width, renamed = _number(given, "max-line-length", 79), dict[str, str]()
    if any(_LONG_LINE.startswith(one) and len(one) > 1 for one in selected) and "E501" not in codes:
        codes.append("E501")
        width, renamed["E501"] = int(width * _LONGER), _LONG_LINE
    options = ["--select", ",".join(codes), "--line-length", str(width)]
    options += ["--preview", "--config", "lint.explicit-preview-rules=true"]
    if complexity:
        options += ["--config", f"lint.mccabe.max-complexity={complexity}"]
    named = tuple(one for one in selected if any(_counts(code, [one], ()) for code in codes))
    skipped = tuple(_per_file(str(given.get("per-file-ignores", "")), path))
    return Rules("flake8", named, tuple(options), skipped, tuple(renamed.items())) if codes else None


def _flake8_settings(tree: Tree) -> dict[str, str] | None:
    for name in _FLAKE8_FILES:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(tree.read(name) or "")
        except configparser.Error:
            continue
        if parser.has_section("flake8"):
            return {key.replace("_", "-"): value for key, value in parser["flake8"].items()}
    return None


def _counts(code: str, selected: Iterable[str], ignored: Iterable[str]) -> bool:
    """Whether flake8 reports a code: the longest beginning decides."""
    wanted = max((len(one) for one in selected if _begins(code, one)), default=0)
    unwanted = max((len(one) for one in ignored if _begins(code, one)), default=0)
    return wanted > unwanted


def _begins(code: str, beginning: str) -> bool:
    """Whether a code begins so and is of the same plugin: C is C4 and C90, not COM."""
    letters = [found[0] for one in (code, beginning) if (found := _LETTERS.match(one))]
    return code.startswith(beginning) and letters[0] == letters[1]


@lru_cache(maxsize=1)
def _ruff_codes() -> tuple[str, ...]:
    """Ruff's codes for rules of flake8 and its plugins: all stable ones, and pycodestyle's previews."""
    command = [sys.executable, "-m", "ruff", "rule", "--all", "--output-format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
        listed = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InfrastructureError(f"ruff, which lints proposed tests, does not run: {error}") from error
    return tuple(
        str(one["code"])
        for one in listed
        if "Stable" in one["status"] or (str(one["code"])[0] in "EW" and "Preview" in one["status"])
    )


def _per_file(text: str, path: str) -> Iterator[str]:
    """The codes of flake8's `per-file-ignores` for a path: `files: codes files: codes`."""
    names: list[str] = []
    ended = False
    for word in re.findall(r"[^\s,:]+|:", "\n".join(line.partition("#")[0] for line in text.splitlines())):
        if word == ":":
            ended = True
        elif ended and _CODE.fullmatch(word):
            if any(_names(name, path) for name in names):
                yield word
        else:
            names, ended = ([], False) if ended else (names, ended)
            names.append(word)


def _names(pattern: str, path: str) -> bool:
    """Whether a pattern of ignores names a file: its path, or its name alone."""
    wanted = pattern.removeprefix("!").removeprefix("./")
    found = fits(path, [wanted]) or fits(path.rpartition("/")[2], [wanted])
    return found != pattern.startswith("!")


def _section(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = given.get(name)
    return dict(value) if isinstance(value, dict) else {}


def _strings(given: Mapping[str, Any], *names: str) -> list[str]:
    lists = (given.get(name) for name in names)
    return [str(one) for value in lists if isinstance(value, list) for one in value]


def _words(given: Mapping[str, str], name: str) -> list[str]:
    """Words between commas; comments are left out."""
    lines = [line.partition("#")[0] for line in given.get(name, "").splitlines()]
    return [word for line in lines for word in line.replace(",", " ").split()]


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    value = given.get(name, "").strip()
    return int(value) if value.isdecimal() else default
