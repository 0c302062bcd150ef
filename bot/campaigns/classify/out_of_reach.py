"""Failures that may come of sources which the toolchain does not have. Pure functions.

An overlay has the commit's Python and a release's binaries. What it accuses must not be the fault of this
mixture, so a failure counts as out of reach where the missing sources may explain it: they have the name that
is missing, or the commit changes in them what the failure is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

#: What says that a name is missing. Messages of Python, and of the registries of TVM (tvm_ffi 0.1), torch and
#: MLIR.
_MISSING = re.compile(
    r"""
    Cannot\ find\ (?:global\ function|object\ type\ index\ for|type)\ `?(?P<registry>[\w.]+)
  | Invalid\ config\ option\ '(?P<option>[\w.]+)
  | has\ no\ attribute\ '(?P<attribute>\w+)'
  | cannot\ import\ name\ '(?P<imported>\w+)'
  | No\ module\ named\ '(?P<module>[\w.]+)'
  | unexpected\ keyword\ argument\ '(?P<keyword>\w+)'
  | undefined\ symbol:\ (?P<symbol>\w+)
  | (?i:\b(?:unknown|unregistered|unrecognized|no\ such)
      \ (?:op|operator|operation|function|attribute|pass|type)\b\W*(?P<unknown>[\w.:]+))
  | (?i:\b(?:op|operator|operation|function|kind|pass|type)\ ["'`]?(?P<undefined>[\w.:]+)["'`]?
      \ (?:is\ not\ (?:registered|defined)|does\ not\ exist|not\ found))
    """,
    re.VERBOSE,
)
#: What says that a call does not fit a native function: of tvm_ffi, and of pybind11 and nanobind.
_MISMATCHED = re.compile(
    r"Mismatched (?:number of arguments|type on argument #\d+) when calling: `(?P<ffi>[\w.]+)"
    r"|\b(?P<bound>\w+)\(\): incompatible (?:function|constructor) arguments"
    r"|Required field `\w+` not set in type `(?P<type>[\w.]+)"
)
_WORD = re.compile(r"[A-Za-z_][\w.]*")
#: Where a word is a name of a program: `relax.op.add`, data_layout, GridSample.
_JOINT = re.compile(r"[a-z0-9][A-Z_]|\w\.\w")
_GENERAL = re.compile(r"(?:Error|Exception|Warning)$|^(?:float|u?int|bfloat)\d|^std\.|\.(?:cc|cpp|h|py)$")
#: Operators of ONNX whose names in lower case are words of C++.
_KEYWORDS = frozenset({"if", "and", "or", "not", "xor", "while", "for", "switch", "default"})

_DECIDES = "only a build of the compiler decides"


class UnreachableSources(Protocol):
    """Name → file, of sources that the toolchain does not have (`bot.toolchains.unreachable_sources`)."""

    @property
    def wheel(self) -> str:
        """What the toolchain has in their place."""

    @property
    def gained(self) -> Mapping[str, str]:
        """Names that they have, and had not when the wheel was released."""

    @property
    def changed(self) -> Mapping[str, str]:
        """Names on lines that the change touches."""

    @property
    def touched(self) -> Mapping[str, str]:
        """Names in files that the change touches."""


def explain_by_unreachable(message: str, operator: str, sources: UnreachableSources) -> str:
    """Why a failure at head may be the toolchain's and not the commit's; "" if nothing says so.

    operator  what the case tests, "" if it is not one operator
    """
    for name in missing_names(message):
        file = _find(sources.gained, name) or _find(sources.changed, name)
        if file:
            return f"`{name}` is not in {sources.wheel}, and {file} of the commit names it; {_DECIDES}"
    if not sources.touched:
        return ""
    for name in _names(_MISMATCHED, message):
        if file := _find(sources.touched, name):
            return f"{sources.wheel} has another `{name}`, and this change touches {file}; {_DECIDES}"
    words = (found[0].strip(".") for found in _WORD.finditer(message))
    for name in (word for word in words if _JOINT.search(word) and not _GENERAL.search(word)):
        if file := _find(sources.changed, name):
            return f"the message names `{name}`, which this change touches in {file} too; {_DECIDES}"
    for name in _operator_names(operator):
        if file := sources.changed.get(name, ""):
            return f"this change touches {operator} in {file} too; {_DECIDES}"
    return ""


def missing_names(message: str) -> Iterator[str]:
    """The names that a message says are missing."""
    return _names(_MISSING, message)


def _names(pattern: re.Pattern[str], message: str) -> Iterator[str]:
    for found in pattern.finditer(message):
        yield str(next(filter(None, found.groups()))).replace("::", ".").strip(".:")


def _find(names: Mapping[str, str], name: str) -> str:
    """The file that has a name, or its last part: registrations often have the rest in a macro."""
    return names.get(name, "") or names.get(name.rpartition(".")[2], "")


def _operator_names(operator: str) -> Iterator[str]:
    """An operator as ONNX and as C++ write it: GridSample, grid_sample."""
    for name in (word.rpartition(".")[2] for word in operator.split()):
        for spelled in (name, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()):
            if spelled not in _KEYWORDS:
                yield spelled
