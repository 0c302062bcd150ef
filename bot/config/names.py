"""The names a configuration may use for what is registered elsewhere, and what was meant by a wrong one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import fuzzing
from fuzzing import backends as adapters

_REGISTER_SOURCE = "register_source"  # the decorator in fuzzing.migrate.sources


def backends() -> tuple[str, ...]:
    """Every compiler that can be tested; not the judges, whose packages are pinned for other reasons."""
    return adapters.compilers()


@cache
def sources() -> tuple[str, ...]:
    """Every case source of `fuzzing.migrate`.

    Read from its files, because the control plane must not import them (law 1).
    """
    folder = Path(next(iter(fuzzing.__path__))) / "migrate"
    trees = (ast.parse(path.read_bytes()) for path in sorted(folder.glob("*.py")))
    return tuple(sorted(name for tree in trees for name in _registered(tree)))


def _registered(tree: ast.Module) -> Iterator[str]:
    """The names under which a file registers sources: `@register_source("…")` or `@register_source(NAME)`."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        for call in getattr(node, "decorator_list", ()):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(_REGISTER_SOURCE) and call.args:
                first = call.args[0]
                value = constants.get(first.id) if isinstance(first, ast.Name) else first
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def provisioners() -> tuple[str, ...]:
    """Every provisioner that a repository may ask for."""
    from bot.toolchains.registry import offered  # here, because toolchains read configurations

    return offered()


def meant(word: str, known: Iterable[str]) -> str:
    """What to say after an unknown word: the likeliest one it was meant to be, and all there are."""
    names = list(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}There are: {', '.join(names) or 'none'}"


def backend_name(word: str) -> str:
    """Checks the name of a backend."""
    return _one_of("backend", word, backends())


def source_name(word: str) -> str:
    """Checks the name of a case source."""
    return _one_of("case source", word, sources())


def provisioner_name(word: str) -> str:
    """Checks the name of a provisioner."""
    return _one_of("provisioner for repositories", word, provisioners())


def _one_of(kind: str, word: str, known: tuple[str, ...]) -> str:
    if word not in known:
        raise ValueError(f"{word[:50]!r} is no {kind}; {meant(word, known)}")
    return word
