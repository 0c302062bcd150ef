"""Issue forms of compilers: one file each, found by its name.

A form is a template, `templates/issues/BACKEND.md.j2`, with the headings of the compiler's own form, and its
labels and facts. Backends without one use the plain form, `reports/issue.md.j2`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from bot.errors import InternalError

if TYPE_CHECKING:
    from bot.reports.report import Group, Report

#: Template variables of a form besides those of every issue.
Fields = Callable[["Report", "Group"], Mapping[str, Any]]
Labels = Callable[["Report", "Group"], Sequence[str]]

PLAIN = "reports/issue.md.j2"


def _nothing(_report: Report, _group: Group) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class IssueTemplate:
    """One form.

    prefix   of titles
    labels   in addition to those of the repository's configuration
    """

    template: str = PLAIN
    prefix: str = ""
    labels: Labels = lambda _report, _group: ()
    fields: Fields = _nothing


_TEMPLATES: dict[str, IssueTemplate] = {}


def register(backend: str, issue_template: IssueTemplate) -> None:
    """Registers a backend's form."""
    if backend in _TEMPLATES:
        raise InternalError(f"two forms are for {backend!r}")
    _TEMPLATES[backend] = issue_template


@cache
def _load_templates() -> Mapping[str, IssueTemplate]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(_TEMPLATES)


def template_for(backend: str) -> IssueTemplate:
    """The backend's form, or the plain one."""
    return _load_templates().get(backend, IssueTemplate())


def backends() -> tuple[str, ...]:
    """The backends with a form, sorted."""
    return tuple(sorted(_load_templates()))
