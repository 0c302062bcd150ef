"""Reads YAML from untrusted files into plain data, with the position of every key and value.

Accepts one document of mappings, sequences and plain scalars. Refuses directives, tags, duplicate keys, tabs
as indentation, and constructs that expand a small file into a large one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from bot.config.problems import Path, Problem, format_path

MAX_BYTES = 64 << 10  # a full configuration is 2 KiB
MAX_DEPTH = 8  # the model is 3 deep
MAX_ALIASES = 16
MAX_PROBLEMS = 50
MAX_VALUES = 2_000  # after aliases are followed

_TAG = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?\d{1,15}")
_CONVERT: dict[str, Callable[[str], Any]] = {
    _TAG + "null": lambda _: None,
    _TAG + "bool": lambda text: text.lower() in ("true", "yes", "on"),
    _TAG + "int": lambda text: int(text) if _INTEGER.fullmatch(text) else text,
    _TAG + "float": lambda text: text,  # no key has floats; error messages show the text
    _TAG + "str": lambda text: text,
    # No key has dates or merge keys; the model refuses the text.
    _TAG + "timestamp": lambda text: text,
}


class UnreadableError(Exception):
    """The file is unreadable; `problem` says why. `bot.config.parser` turns it into a ConfigError."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True)
class Document:
    """The content of a file.

    data    dict, list, str, int, bool or None
    keys    path → (line, column), 1-based, of the key that leads there
    values  path → (line, column), 1-based, of the value
    problems  mistakes that do not prevent reading the rest
    """

    data: Any
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def position_of(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """The position of the value at `path` (or of its key), else of the nearest enclosing value."""
        for end in range(len(path), -1, -1):
            places = self.keys if key and end == len(path) and end else self.values
            if path[:end] in places:
                return places[path[:end]]
        return (1, 1)


def read_document(content: bytes) -> Document:
    """Reads a YAML file; raises UnreadableError."""
    text = _decode(content)
    try:
        _check_events(text)
        node = YAML(typ="safe", pure=True).compose(text)
    except ReaderError as error:
        line, column = _find_position(text, error.position)
        _fail("has a character that YAML does not allow; delete it", line, column)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        _fail(f"is not valid YAML: {error.problem or error.context}", line, column)
    except YAMLError as error:
        _fail(f"is not valid YAML: {str(error).splitlines()[0]}", 0, 0)
    except (
        ValueError,
        OverflowError,
        LookupError,
        AttributeError,
        TypeError,
        AssertionError,
        RecursionError,
    ):
        # The parser raises these for some malformed escapes, tags and directives.
        _fail("is not valid YAML", 0, 0)
    return _Reader().read(node)


def _decode(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        _fail(f"is {len(content)} bytes long; at most {MAX_BYTES} are read", 0, 0)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _find_position(content[: error.start].decode(errors="replace"), -1)
        _fail("is not UTF-8 text; save it as UTF-8", line, column)
    for number, line_text in enumerate(text.splitlines(), 1):
        indent = line_text[: len(line_text) - len(line_text.lstrip())]
        if "\t" in indent and line_text.strip():
            _fail("is indented with a tab; use spaces", number, indent.index("\t") + 1)
        if line_text.startswith("%"):
            _fail("has a YAML directive; delete this line", number, 1)
    return text


def _check_events(text: str) -> None:
    """Refuses bombs before any node is built: the parser yields events one at a time."""
    depth = aliases = documents = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            depth -= 1
        elif isinstance(event, AliasEvent):
            aliases += 1
        elif isinstance(event, DocumentStartEvent):
            documents += 1
        if depth > MAX_DEPTH:
            _fail(f"is nested deeper than {MAX_DEPTH} levels", line, column)
        if aliases > MAX_ALIASES:
            _fail(f"has more than {MAX_ALIASES} aliases", line, column)
        if documents > 1:
            _fail("holds more than one document; delete the second '---'", line, column)


class _Reader:
    """Converts composed nodes into plain data, and records positions."""

    def __init__(self) -> None:
        self.keys: dict[Path, tuple[int, int]] = {}
        self.values: dict[Path, tuple[int, int]] = {}
        self._problems: list[Problem] = []
        self._count = 0

    def read(self, node: Node | None) -> Document:
        if node is None:
            return Document(None)
        data = self._value(node, ())
        return Document(data, self.keys, self.values, tuple(self._problems))

    def _value(self, node: Node, path: Path) -> Any:
        place = (node.start_mark.line + 1, node.start_mark.column + 1)
        self.values[path] = place
        self._count += 1
        if self._count > MAX_VALUES or len(path) > MAX_DEPTH:  # an alias may repeat, or contain itself
            _fail(f"holds more than {MAX_VALUES} values, or an alias of itself", *place)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        convert = _CONVERT.get(str(node.tag))
        if convert is None:
            name = str(node.tag).removeprefix(_TAG)[:50]
            self._add_problem(place, path, f"has the tag {name!r}; write a plain value")
            return str(node.value)
        return convert(node.value)

    def _add_problem(self, place: tuple[int, int], path: Path, message: str) -> None:
        if len(self._problems) >= MAX_PROBLEMS:
            _fail(f"has more than {MAX_PROBLEMS} mistakes; fix those before this line first", *place)
        self._problems.append(Problem(*place, format_path(path), message))

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if not isinstance(key_node, ScalarNode):
                _fail("has a key that is no plain word", *place)
            key = str(key_node.value)
            if key in data:
                first = self.keys[*path, key]
                message = f"is given twice, first on line {first[0]}; delete one"
                self._add_problem(place, (*path, key), message)
                continue
            self.keys[*path, key] = place
            data[key] = self._value(value_node, (*path, key))
        return data


def _find_position(text: str, position: int) -> tuple[int, int]:
    before = text if position < 0 else text[:position]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _fail(message: str, line: int, column: int) -> NoReturn:
    raise UnreadableError(Problem(line, column, "", message))
