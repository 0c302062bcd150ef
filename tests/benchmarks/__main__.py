"""Runs a benchmark by name: `python -m tests.benchmarks [NAME [OPTIONS]]`; without one, lists them.

A benchmark is a module in this folder with a one-line docstring and `main(argv) -> int`.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """Name → its docstring's first line."""
    found = {}
    for path in sorted(FOLDER.glob("[!_]*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_bytes())) or ""
        found[path.stem.replace("_", "-")] = docstring.partition("\n")[0]
    return found


def main(argv: Sequence[str]) -> int:
    """The benchmark's exit code; 0 after the list, 2 for an unknown name."""
    known = benchmarks()
    if argv and argv[0] in known:
        module = importlib.import_module(f"tests.benchmarks.{argv[0].replace('-', '_')}")
        code: int = module.main(argv[1:])
        return code
    width = max(map(len, known), default=0)
    for name, line in known.items():
        print(f"{name:{width}}  {line}")
    if argv:
        print(f"no benchmark {argv[0]!r}; the ones above are there", file=sys.stderr)
    return 2 if argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
