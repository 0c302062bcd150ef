"""Counts a compiler's own tests by operator, from their sources; nothing is built or run.

    python -m fuzzing.prioritize.suites.operator_counts --frontend onnx --origin TEXT PATH… > ort.onnx.json

A test is a Python function called `test…` or one of googletest's `TEST`s. It counts once for each operator
that its body names; without any, for those named by functions of the same file that it uses (two calls deep);
else for the one in its name (`TEST(NonZeroOpTest, Numeric)`). An operator is named by its own spelling as a
string (`OpTester test("Add", 7)`, `make_node("Add", …)`) or by a scoped name (`torch.add`, `nn.Conv2d`,
`"aten::add"`). Parametrized tests count once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from fuzzing.entry_point import note, run_main
from fuzzing.errors import UsageError
from fuzzing.prioritize.change import cpp_outline, python_outline
from fuzzing.prioritize.change.operator_names import name
from fuzzing.prioritize.change.symbols import Outline, Symbol, UseGraph

_OUTLINES: dict[str, Callable[[str], Outline | None]] = {
    ".py": python_outline.outline,
    ".cc": cpp_outline.outline,
    ".cpp": cpp_outline.outline,
}
#: Scopes of the names of torch's operators.
_SCOPES = frozenset({"torch", "nn", "F", "aten"})


def count(paths: Iterable[Path], operators: Iterable[str]) -> Counter[str]:
    """Number of tests of each of `operators` in the files, and in the files below the folders, of `paths`.

    Operators without a test are absent; of several spellings of one, the first in `operators` counts.
    """
    known: dict[str, str] = {}
    for operator in operators:
        known.setdefault(name(operator).exact, operator)
    found: Counter[str] = Counter()
    for path in _files(paths):
        outline = _OUTLINES[path.suffix](path.read_text(encoding="utf-8", errors="replace"))
        if outline is not None:
            graph = UseGraph(outline)
            for test in outline.symbols:
                if test.is_test:
                    found.update(_operators(test, graph, known))
    return found


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (one for one in sorted(path.rglob("*")) if one.suffix in _OUTLINES and one.is_file())
        elif path.suffix in _OUTLINES and path.is_file():
            yield path
        else:
            raise UsageError(f"{path} is neither a folder nor a file in Python or C++")


def _operators(test: Symbol, graph: UseGraph, known: dict[str, str]) -> set[str]:
    for level in graph.used(test):
        spoken = {operator for one in level for operator in _mentioned_operators(one, known)}
        if spoken:
            return spoken
    called = (test.name, test.name.partition("_")[0])
    return {known[name(one).exact] for one in called if name(one).exact in known}


def _mentioned_operators(symbol: Symbol, known: dict[str, str]) -> Iterator[str]:
    for spelled in (*symbol.names, *symbol.mentions):
        operator = known.get(name(spelled).exact)
        scoped = spelled.replace("::", ".").partition(".")
        if operator and (spelled == operator or (scoped[1] and scoped[0] in _SCOPES)):
            yield operator


def _known_operators(frontend: str) -> list[str]:
    """The spellings in a table of this frontend: ONNX's types, aten's names."""
    if frontend == "onnx":
        from onnx import defs

        return sorted({schema.name for schema in defs.get_all_schemas() if schema.domain == ""})
    if frontend == "torch":
        import torch

        names = {schema.name for schema in torch._C._jit_get_all_schemas()}
        return sorted(
            one.removeprefix("aten::") for one in names if one.startswith("aten::") and one[-1] != "_"
        )
    raise UsageError(f"operators of {frontend!r} are not known; take onnx or torch")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; prints a suite, and its size on stderr. Exit code 2: usage error."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.prioritize.suites.operator_counts")
    parser.add_argument("--frontend", required=True, help="whose operators: onnx or torch")
    parser.add_argument("--origin", required=True, help="what is counted, and of which release")
    parser.add_argument("paths", nargs="+", type=Path, help="test files, or folders of them")
    given = parser.parse_args(arguments)

    def work() -> None:
        found = count(given.paths, _known_operators(given.frontend))
        table = {"origin": given.origin, "operators": dict(sorted(found.items()))}
        sys.stdout.write(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
        note(f"{found.total()} tests of {len(found)} operators")

    return run_main(parser.prog, work, events=False)


if __name__ == "__main__":
    sys.exit(main())
