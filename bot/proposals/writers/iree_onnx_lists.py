"""IREE's lists of ONNX node tests that are expected to fail.

IREE runs ONNX's node tests from another repository, iree-test-suites; its own repository only lists those
that fail. A bug that is open adds a line, a fixed one removes it.
"""

from __future__ import annotations

import bisect
import re

from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer, writer
from bot.reports.reproducer import full_configuration
from fuzzing.outcomes import Phase, Verdict

_LISTS = "tests/external/iree-test-suites/onnx_ops/onnx_ops_cpu_llvm_sync"
_SOURCE = "onnx-node-tests"
_ENTRY = re.compile(r'^\s*"(?P<name>[^"]+)"\s*,?\s*$')


@writer
class IreeOnnxListsWriter(Writer):
    """`onnx_ops_cpu_llvm_sync.json`: `expected_compile_failures` and `expected_run_failures`."""

    name = "iree-onnx-lists"
    backend = "iree"
    frontend = "onnx"
    expects_failures = True
    is_provable = False

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """The list of the level of optimization, for failures of ONNX's node tests."""
        del settings
        options, _ = full_configuration(regression.outcome)
        paths = (f"{_LISTS}_{options.get('optimization', 'O0')}.json", f"{_LISTS}.json")
        found = next((path for path in paths if tree.has(path)), None)
        is_node_test = regression.case.provenance.source == _SOURCE
        return Place(found) if found is not None and is_node_test else None

    def edit(self, regression: Regression, before: str, *, is_open: bool) -> tuple[str, str]:
        """The node test, and the lists with it or without it."""
        name = f"onnx/node/generated/{regression.case.provenance.test}"
        lines = before.splitlines(keepends=True)
        if not is_open:
            return name, "".join(_without(lines, name))
        if any((found := _ENTRY.match(line)) and found["name"] == name for line in lines):
            return name, before
        outcome = regression.outcome
        is_run = outcome.verdict is Verdict.WRONG_RESULT or outcome.phase is Phase.RUN
        return name, "".join(_with(lines, f"expected_{'run' if is_run else 'compile'}_failures", name))

    def command(self, place: Place, name: str) -> tuple[str, ...]:
        """What IREE's workflows run, with a checkout of iree-test-suites beside the repository."""
        return ("-m", "pytest", "iree-test-suites/onnx_ops", f"--config-files={place.path}", "-k", name)


def _without(lines: list[str], name: str) -> list[str]:
    """The lines without the entry; a new last entry loses its comma."""
    kept: list[str] = []
    for line in lines:
        found = _ENTRY.match(line)
        if found and found["name"] == name:
            continue
        if line.strip().startswith("]") and kept and _ENTRY.match(kept[-1]):
            kept[-1] = _ended(kept[-1], "")
        kept.append(line)
    return kept


def _with(lines: list[str], key: str, name: str) -> list[str]:
    """The lines with an entry in the list `key`, in its order; unchanged if there is no such list."""
    empty = re.compile(rf'^(\s*)"{key}": \[\](,?)\s*$')
    for at, line in enumerate(lines):
        if (one := empty.match(line)) is not None:
            lines[at : at + 1] = [f'{one[1]}"{key}": [\n', f'{one[1]}  "{name}"\n', f"{one[1]}]{one[2]}\n"]
            return lines
        if line.strip() == f'"{key}": [':
            end = next(other for other in range(at, len(lines)) if lines[other].strip().startswith("]"))
            return _inserted(lines, at + 1, end, name)
    return lines


def _inserted(lines: list[str], start: int, end: int, name: str) -> list[str]:
    """The lines with an entry between two indices; entries are compared as IREE sorts them, by their text."""
    names = [found["name"] if (found := _ENTRY.match(line)) else "" for line in lines[start:end]]
    at = start + bisect.bisect(names, name)
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())] if end > start else "    "
    lines.insert(at, f'{indent}"{name}"{"," if at < end else ""}\n')
    if at == end > start:
        lines[at - 1] = _ended(lines[at - 1], ",")
    return lines


def _ended(line: str, comma: str) -> str:
    return f"{line.rstrip().rstrip(',')}{comma}\n"
