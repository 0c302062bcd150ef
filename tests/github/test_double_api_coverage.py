"""Every API path in our code is served by the double and described by GitHub.

The paths are read from the source, so untested ones count, too. PyGithub's methods have theirs in PyGithub:
the double refuses a path that it does not serve or that GitHub does not describe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bot.github
from tests.github.calls import ROUTES, RefusedError
from tests.github.server import routed
from tests.github_api.api_schema import operation

#: Prefixes of API paths.
ROOTS = ("/app", "/installation/", "/rate_limit", "/repos/", "/search/", "/user")
#: Methods of a `Client` that read.
READS = {"get", "get_or_none", "pages"}
TARGET = "octo/compiler"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """All modules of `bot.github`, and the return values of their functions."""

    def __init__(self) -> None:
        folder = Path(bot.github.__file__).parent
        self.modules = [ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))]
        self.returned: dict[str, ast.expr] = {}
        for module in self.modules:
            for function in _functions(module):
                if isinstance(last := function.body[-1], ast.Return) and last.value is not None:
                    self.returned[function.name] = last.value

    def requests(self) -> Iterator[tuple[str, str]]:
        """Method and path of each request, with "1" and TARGET for values known only at run time."""
        for module in self.modules:
            for function in _functions(module):
                known = {
                    target.id: node.value
                    for node in ast.walk(function)
                    if isinstance(node, ast.Assign)
                    for target in node.targets
                    if isinstance(target, ast.Name)
                } | _of_tuples(function)
                for node in ast.walk(function):
                    if isinstance(node, ast.Call):
                        yield from self._asked(node, known)

    def literals(self) -> set[str]:
        """Every string in the source that starts like an API path, up to its first unknown part."""
        nodes = [node for module in self.modules for node in ast.walk(module)]
        compared = {id(text) for node in nodes for text in _compared(node)}
        texts = [path for node in nodes if id(node) not in compared and (path := _path(node))]
        return {text for text in texts if not set(text) & set(" []()")}  # prose and patterns are no paths

    def _asked(self, call: ast.Call, known: dict[str, ast.expr]) -> Iterator[tuple[str, str]]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in READS and call.args:
            method, path = "GET", self._text(call.args[0], known)
        elif name in ("Request", "request") and len(call.args) > 1:
            method, path = self._text(call.args[0], known), self._text(call.args[1], known)
        else:
            return
        if path.startswith("/"):
            yield method, path

    def _text(self, node: ast.expr, known: dict[str, ast.expr]) -> str:
        """The value of an expression."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.JoinedStr):
            return "".join(self._text(part, known) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self._text(node.value, known)
        if isinstance(node, ast.Name):
            inner = known.get(node.id)
            if inner is not None and (text := self._text(inner, {})).startswith("/"):
                return text
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.returned:
            text = self._text(self.returned[node.func.id], {})
            if text.startswith("/"):
                return text
        return TARGET if "target" in ast.unparse(node) else "1"


def _functions(module: ast.Module) -> Iterator[Function]:
    yield from (node for node in ast.walk(module) if isinstance(node, Function))


def _of_tuples(function: Function) -> dict[str, ast.expr]:
    """Names bound by `a, b = x, y`."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            for target in node.targets:
                if isinstance(target, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=True)
                    found |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
    return found


def _compared(node: ast.AST) -> list[ast.expr]:
    """What a path is only compared with: the arguments of `path.startswith(…)`."""
    starts = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "startswith"
    return node.args if isinstance(node, ast.Call) and starts else []


def _path(node: ast.AST) -> str:
    """The text of a node that starts like an API path, "" for any other."""
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) and text.startswith(ROOTS) else ""


SOURCE = Source()
REQUESTED = sorted(set(SOURCE.requests()))


@pytest.mark.parametrize(("method", "path"), REQUESTED, ids=lambda text: text)
def test_the_double_serves_what_is_asked(method: str, path: str) -> None:
    requested = operation(method, path)
    assert requested is not None, "GitHub has no such operation, or it is missing in prune.py"
    route, parameters = routed(method, path)
    assert (route.method, route.template) == (requested.method, requested.template)
    assert parameters.get("owner", "octo") == "octo"


def test_no_path_in_the_source_was_overlooked() -> None:
    paths = [path for _, path in REQUESTED]
    for literal in SOURCE.literals():
        assert any(path.startswith(literal) for path in paths), f"nobody asks for {literal}…"
    assert {("GET", f"/repos/{TARGET}/collaborators/1/permission"), ("DELETE", "/installation/token")} <= set(
        REQUESTED
    )


def test_what_the_double_lacks_is_told() -> None:
    with pytest.raises(RefusedError):
        routed("POST", f"/repos/{TARGET}/releases")


def test_every_route_is_one_that_github_describes() -> None:
    for route in ROUTES:
        requested = operation(route.method, route.template)
        assert requested is not None, f"{route.method} {route.template}"
        assert requested.template == route.template
