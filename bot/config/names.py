"""The names a configuration may use for what is registered elsewhere, and what was meant by a wrong one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import fuzzing


def backends() -> tuple[str, ...]:
    """Every registered backend."""
    return tuple(import_module("fuzzing.backends").names())


def sources() -> tuple[str, ...]:
    """Every case source: a file of `fuzzing/migrate` each.

    Read from the folder, because importing a source imports the library whose tests it migrates.
    """
    folder = Path(next(iter(fuzzing.__path__))) / "migrate"
    names = (path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    return tuple(sorted(name.replace("_", "-") for name in names))


def provisioners() -> tuple[str, ...]:
    """Every provisioner that a repository may ask for."""
    from bot.toolchains.registry import offered

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
