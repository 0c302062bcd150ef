"""The examples in torch's docstrings as cases, recorded as they run.

Each docstring's `>>>` examples run in a sandboxed process (`torch_doctests`): no network, a scratch folder, a
time limit for each docstring. Printed output is not compared.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO, Any

from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError, InternalError
from fuzzing.migrate.recorders import recording_file
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.migrate.torch_doctests import LIMIT_S

NAME = "torch-docs"
LIBRARY = "torch"
#: Where docstrings with examples are looked for, in this order; one that is found twice is run once.
MODULES = (
    "torch",
    "torch.Tensor",
    "torch.nn",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.signal.windows",
    "torch.sparse",
    "torch.masked",
    "torch.nn.init",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations",
    "torch.func",
)
_CHUNK = 1 << 16
#: Others may name folders that are closed there, such as TORCHINDUCTOR_CACHE_DIR, which torch itself sets.
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "TZ")
_SHOWN = 2000  # bytes of what a process printed that are shown


@register_source(NAME, library=LIBRARY)
def migrate(part: Selection | None = None) -> Iterator[TestCase | Skip]:
    """The calls of the examples of every docstring of the installed torch, docstring after docstring."""
    names = [name for name in list_documented() if part is None or part.contains(name)]
    yield from _drop_duplicates(run(names))


def list_documented() -> list[str]:
    """The dotted names of docstrings with examples, in the order of MODULES, then by name.

    Raises InfrastructureError where torch is not installed.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InfrastructureError(f"{NAME} needs torch: pip install torch ({error})") from error
    found: dict[str, str] = {}
    for dotted in MODULES:
        for name, text in _docstrings(dotted):
            found.setdefault(text, f"{dotted}.{name}")
    return list(found.values())


def _docstrings(dotted: str) -> Iterator[tuple[str, str]]:
    owner = _owner(dotted)
    for name in sorted(dir(owner)):
        text = getattr(getattr(owner, name, None), "__doc__", None)
        public = not name.startswith("_") and not inspect.ismodule(getattr(owner, name))
        if public and isinstance(text, str) and ">>> " in text:
            yield name, text


def _owner(dotted: str) -> Any:
    with suppress(ImportError):
        return importlib.import_module(dotted)
    from fuzzing.torch_api.serializer import resolve

    return resolve(dotted)  # torch.Tensor; None, which has no docstrings, in a torch that lacks the module


def _drop_duplicates(items: Iterator[TestCase | Skip]) -> Iterator[TestCase | Skip]:
    """Each case once: many docstrings begin by drawing the same tensor."""
    seen: set[str] = set()
    for item in items:
        if isinstance(item, TestCase):
            if item.id in seen:
                continue
            seen.add(item.id)
            item = replace(item, provenance=replace(item.provenance, source=NAME))  # noqa: PLW2901
        yield item


# The processes that run examples -----------------------------------------------------------------------


def run(names: Sequence[str]) -> Iterator[TestCase | Skip]:
    """The calls of the examples of these docstrings. One that ends its process costs a new process.

    Raises InfrastructureError if none can be started.
    """
    rest = list(names)
    while rest:
        process = _Examples(rest)
        yield from process.items()
        if process.exit_code == 0:
            return
        ended, rest = rest[process.begun - 1], rest[process.begun :]
        reason = f"its examples end the process, or take longer than {LIMIT_S} s"
        yield Skip(ended, reason, f"exit code {process.exit_code}{process.last_words}")


class _Examples:
    """One process that runs the examples of some docstrings.

    begun       how many docstrings it has begun
    exit_code   after the items are consumed; negative if a signal ended it
    last_words  then the last line that it printed, if any, after ": "
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.begun = 0
        self.exit_code = 0
        self.last_words = ""

    def items(self) -> Iterator[TestCase | Skip]:
        """The items, as they arrive."""
        with tempfile.TemporaryDirectory(prefix="assay-docs-") as folder, tempfile.TemporaryFile() as log:
            with self._start(folder, log) as process:
                try:
                    for item in recording_file.decode(iter(lambda: os.read(_pipe(process), _CHUNK), b"")):
                        yield from self._item(item)
                finally:
                    if process.poll() is None and self.begun < len(self._names):
                        process.kill()  # whoever reads has had enough
            self.exit_code = process.returncode
            log.seek(max(0, os.fstat(log.fileno()).st_size - _SHOWN))
            text = log.read().decode("utf-8", "replace").strip()
            if not self.begun:
                raise InfrastructureError(f"{NAME}: examples cannot be run: {text}")
            self.last_words = text and f": {text.splitlines()[-1]}"

    def _start(self, folder: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "fuzzing.migrate.torch_doctests", folder]
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        environment |= {"HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, env=environment
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._names).encode())
        process.stdin.close()
        return process

    def _item(self, item: recording_file.Item) -> Iterator[TestCase | Skip]:
        if isinstance(item, TestCase):
            yield item
        elif isinstance(item, recording_file.SkippedCall):
            yield Skip(item.test, item.reason, f"{item.api} {item.detail}".strip())
        elif isinstance(item, recording_file.RecorderError):
            raise InternalError(f"the recorder broke at {item.api} of {item.test}\n{item.traceback}")
        elif isinstance(item, recording_file.Mark):
            self.begun += 1


def _pipe(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return process.stdout.fileno()
