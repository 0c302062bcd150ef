"""Runs in the interpreter of a toolchain, confined: `python -I probe_script.py QUERY` prints what it holds.

QUERY is JSON: {"module": the compiler's module to import, "extra_modules": names of modules, "content":
whether to digest every file}. Prints a line that begins with MARK: {"python": version, "packages": {name:
version}, "content": digest or "", "sources": [path]}. Python 3.8 or later, standard library only.
"""

# Interpreters may be old (typing), and a Path for each of 30,000 files costs more than looking at it.
# ruff: noqa: PTH110, PTH116, PTH119

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import platform
import stat
import sys
from collections.abc import Iterator
from email.parser import HeaderParser
from importlib import metadata
from typing import Any

MARK = "assay-probe:"
#: What of a processor decides which code a compiler makes for it, and of a GPU which driver runs it.
_MACHINE = (("/proc/cpuinfo", ("model name", "flags", "Features")), ("/proc/driver/nvidia/version", ("",)))


def main() -> None:
    """Imports the compiler and prints the answer."""
    query = json.loads(sys.argv[1])
    importlib.import_module(query["module"])
    answer = {
        "python": platform.python_version(),
        "packages": packages(),
        "content": content(query["extra_modules"]) if query["content"] else "",
        "sources": sources(),
    }
    sys.stdout.flush()
    sys.stdout.write("\n" + MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()


def packages(folders: list[str] | None = None) -> dict[str, str]:
    """Distribution → version, names in one spelling; one with unreadable metadata is left out.

    `folders` are searched instead of `sys.path`.
    """
    found: dict[str, str] = {}
    for item in metadata.distributions(path=sys.path if folders is None else folders):
        try:
            # `item.metadata` parses the long description, too, at each access.
            text = item.read_text("METADATA") or item.read_text("PKG-INFO") or item.read_text("")
            fields = HeaderParser().parsestr(text or "")
            name, version = fields["Name"], fields["Version"]
        except (ValueError, OSError):  # no UTF-8, or no file
            continue
        if name and version:
            found.setdefault(str(name).lower().replace("_", "-"), str(version))
    return found


def sources() -> list[str]:
    """The Python files of the modules that are imported by now."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return sorted(file for file in files if isinstance(file, str) and file.endswith(".py"))


def content(extra_modules: list[str]) -> str:
    """A digest of everything that may change what this interpreter's compiler does.

    Path, size and mtime of each file in site-packages, of the modules `extra_modules` and of every loaded
    library; the processor model and the GPU driver.
    """
    digest = hashlib.sha256("".join(_machine()).encode())
    seen: set[tuple[int, int]] = set()
    for top in dict.fromkeys([*_site_packages(), *_modules(extra_modules), sys.executable, *_mapped()]):
        for path, found in _files(os.path.realpath(top), seen):
            line = f"{path}\0{found.st_size}\0{found.st_mtime_ns}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _site_packages() -> Iterator[str]:
    for path in sys.path:
        if os.path.basename(path) in ("site-packages", "dist-packages"):
            yield path


def _modules(names: list[str]) -> Iterator[str]:
    """Where modules lie: a checkout, or an editable install, is no part of site-packages."""
    for name in names:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        if spec is not None:
            yield from spec.submodule_search_locations or filter(None, [spec.origin])


def _mapped() -> list[str]:
    """The libraries this process has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    return sorted(path for path in paths if ".so" in os.path.basename(path))


def _machine() -> Iterator[str]:
    for path, words in _MACHINE:
        if not os.path.exists(path):
            continue
        with open(path) as file:
            for line in file:
                if not line.strip():
                    break  # the other cores are as the first
                if line.startswith(words):
                    yield line


def _files(top: str, seen: set[tuple[int, int]]) -> Iterator[tuple[str, Any]]:
    """Every file at or below `top`, no folder twice, without bytecode."""
    stack = [top]
    while stack:
        path = stack.pop()
        try:
            found = os.stat(path)
            if not stat.S_ISDIR(found.st_mode):
                yield path, found
            elif (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                names = sorted(name for name in os.listdir(path) if name != "__pycache__")
                stack += [f"{path}/{name}" for name in reversed(names)]
        except OSError:
            continue  # a broken link, or gone since it was listed


if __name__ == "__main__":
    main()
