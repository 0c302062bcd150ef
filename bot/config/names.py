"""The names a configuration may use for what is registered elsewhere, and what was meant by a wrong one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import fuzzing
from fuzzing import backends as adapters
from fuzzing.cases.programs import kind_named
from fuzzing.oracles.profiles import profiles

#: The sources of a frontend where nobody names one: its library's own tests. Others have to be asked for.
DEFAULT_SOURCES: Mapping[str, tuple[str, ...]] = {"onnx": ("onnx-node-tests",), "torch": ("torch-opinfo",)}

_REGISTER_SOURCE = "register_source"  # the decorator in fuzzing.migrate.sources


def backends() -> tuple[str, ...]:
    """Every compiler that can be tested; not the judges, whose packages are pinned for other reasons."""
    return adapters.compilers()


def frontends(backend: str) -> tuple[str, ...]:
    """The frontends of a backend, that of its first program kind first."""
    return tuple(dict.fromkeys(kind_named(kind).frontend for kind in adapters.get(backend).kinds))


def all_frontends() -> tuple[str, ...]:
    """The frontends of all backends, sorted."""
    return tuple(sorted({frontend for name in backends() for frontend in frontends(name)}))


def sources() -> tuple[str, ...]:
    """Every case source of `fuzzing.migrate`."""
    return tuple(source_libraries())


def sources_of(frontend: str) -> tuple[str, ...]:
    """The sources whose cases this frontend loads: those of the library it is called after."""
    return tuple(name for name, library in source_libraries().items() if library == frontend)


def default_sources(frontend: str) -> tuple[str, ...]:
    """The sources to use for a frontend where none is named; () if it has none."""
    known = sources_of(frontend)
    return tuple(name for name in DEFAULT_SOURCES.get(frontend, known) if name in known)


@cache
def source_libraries() -> Mapping[str, str]:
    """Each case source, sorted, with the library whose tests it takes.

    Read from its files, because the control plane must not import them (law 1).
    """
    folder = Path(next(iter(fuzzing.__path__))) / "migrate"
    trees = (ast.parse(path.read_bytes()) for path in sorted(folder.glob("*.py")))
    return dict(sorted(pair for tree in trees for pair in _registered(tree)))


def _registered(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a file registers: `@register_source("…", library="…")`, or names bound to such texts."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def text(node: ast.expr) -> str | None:
        value = constants.get(node.id) if isinstance(node, ast.Name) else node
        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None

    for node in tree.body:
        for call in getattr(node, "decorator_list", ()):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(_REGISTER_SOURCE) and call.args:
                name = text(call.args[0])
                library = [text(word.value) for word in call.keywords if word.arg == "library"]
                if name is not None:
                    yield name, next(filter(None, library), "")


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


def profile_name(word: str) -> str:
    """Checks the name of a tolerance profile."""
    return _one_of("tolerance profile", word, profiles())


def frontend_name(word: str, backend: str) -> str:
    """Checks that a backend has this frontend."""
    return _one_of(f"frontend of {backend}", word, frontends(backend))


def device_name(word: str, backend: str) -> str:
    """Checks that a backend has this device."""
    return _one_of(f"device of {backend}", word, adapters.get(backend).devices)


def provisioner_name(word: str) -> str:
    """Checks the name of a provisioner."""
    return _one_of("provisioner for repositories", word, provisioners())


def _one_of(kind: str, word: str, known: tuple[str, ...]) -> str:
    if word not in known:
        raise ValueError(f"{word[:50]!r} is no {kind}; {meant(word, known)}")
    return word
