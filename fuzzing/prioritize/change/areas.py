"""The part of a compiler that a file belongs to, by its path; `compilers` has one file for each compiler.

Files outside all areas count too: names of functions and the words of a path may name operators in any
repository.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import fuzzing.prioritize.change.compilers

#: Roles of a file, and how strongly a change of it implies a change of an operator whose function was
#: touched: from 0 to 1. Estimates; docs/change-aware.md explains them.
ROLES = {
    "converter": 1.0,  # translates one operator of a library: 87 of OPERA's 90 confirmed bugs
    "kernel": 0.8,  # infers the shape of an operator, lowers it or computes it
    "pass": 0.5,  # rewrites graphs in which the operator occurs
    "test": 0.6,  # the compiler's own test of the operator, changed together with what it tests
    "other": 0.3,  # unknown
    "none": 0.0,  # documentation, build files, licences
}

#: Paths that concern no operator, in every repository.
_IRRELEVANT = re.compile(
    r"\.(?:md|rst|txt|ya?ml|toml|cfg|ini|json|lock|png|svg|jpe?g|ipynb|cmake|bazel|bzl|gn|css|html|js|ts|csv|patch)\Z"
    r"|(?:\A|/)(?:docs?|\.github|\.ci|ci|cmake|third_?party|thirdparty|licen[cs]es|samples|js|csharp|java)/"
    r"|(?:\A|/)(?:LICENSE|CODEOWNERS|Dockerfile|Jenkinsfile|Makefile|CMakeLists\.txt)\Z",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r"(?:\A|/)tests?/|(?:\A|/)test_[^/]*\Z|_tests?\.[a-z]+\Z|(?:\A|/)(?:layer_tests|unittests)/",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Area:
    """The files whose path matches `pattern`.

    role       a key of ROLES
    frontends  the libraries whose operators it serves; empty: all
    shared     whether every operator of these frontends passes through it
    """

    pattern: re.Pattern[str]
    role: str
    frontends: frozenset[str] = frozenset()
    shared: bool = False


_AREAS: list[Area] = []


def register_area(pattern: str, *, role: str, frontends: Iterable[str] = (), shared: bool = False) -> None:
    """Registers an area. Of several that match a path, the first registered counts."""
    assert role in ROLES, role
    _AREAS.append(Area(re.compile(pattern), role, frozenset(frontends), shared))


_UNKNOWN = Area(re.compile(""), "other")
_IRRELEVANT_AREA = Area(re.compile(""), "none")


def area_of(path: str) -> Area:
    """The area of a file in a compiler's repository."""
    if _IRRELEVANT.search(path):
        return _IRRELEVANT_AREA
    for area in _load_areas():
        if area.pattern.search(path):
            return area
    return Area(_TESTS, "test") if _TESTS.search(path) else _UNKNOWN


@cache
def _load_areas() -> tuple[Area, ...]:
    package = fuzzing.prioritize.change.compilers
    for module in sorted(one.name for one in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{package.__name__}.{module}")
    return tuple(_AREAS)
