"""`python -m fuzzing.migrate.torch_doctests SCRATCH`: runs examples of torch's docstrings, recording them.

Reads the names of docstrings as a JSON list on stdin; writes frames (`recorders.recording_file`) to stdout: a
mark as a docstring begins, then its skips and cases, each case rerun once. Examples can only write to
SCRATCH.
"""

from __future__ import annotations

import doctest
import json
import math
import os
import random
import re
import resource
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import fuzzing
from fuzzing.cases import TestCase
from fuzzing.errors import InternalError
from fuzzing.execute.sandbox import isolation, kernel
from fuzzing.migrate.recorders.recording import REPLAY_FAILURE
from fuzzing.migrate.recorders.recording_file import FrameSink

LIMIT_S = 20  # for one docstring; all 700 take half a minute
MEMORY_BYTES = 16 << 30  # private and writable, touched or not
FILE_BYTES = 64 << 20
SEED = 0

#: Examples that need what there is not, by their text.
_NEEDS = (
    (re.compile(r"cuda|\bgpu\b|\bmps\b|\bxpu\b", re.IGNORECASE), "an example needs another device"),
    (re.compile(r"distributed|\bdist\.|process_group|DeviceMesh"), "an example needs several processes"),
    (re.compile(r"torch\.hub|urllib|https?://|download"), "an example needs the network"),
    (re.compile(r"\bopen\(|torch\.(save|load|from_file)\(|BytesIO"), "an example reads or writes files"),
    (re.compile(r"torch\.compile\("), "an example compiles"),
)


class DocSink(FrameSink):
    """Holds the cases of the current docstring until they have been rerun."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "torch")
        self._name = ""
        self._cases: list[TestCase] = []

    def begin(self, name: str) -> None:
        """Starts the examples of `name`."""
        self._name = name
        self._skipped.clear()  # reported once for each docstring
        self.mark(name)

    def test(self) -> str:
        """The current docstring."""
        return self._name

    def case(self, case: TestCase) -> None:
        """Holds a case for `check`."""
        self._cases.append(case)

    def check(self) -> None:
        """Reruns the held cases. Writes those that run, with their comparison; skips for the others."""
        from fuzzing.torch_api.samples import observe_case

        for case in self._cases:
            try:
                observed = observe_case(case)
            except InternalError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever torch raises
                self.skip(case.provenance.operator, REPLAY_FAILURE, repr(error))
            else:
                shapes = observed.random or case.comparison == "shapes"
                super().case(replace(case, comparison="shapes" if shapes else "values"))
        self._cases.clear()


def run(names: Sequence[str], sink: DocSink) -> None:
    """Runs the examples of each docstring, recording into `sink`."""
    import torch

    from fuzzing.migrate.recorders.torch import TorchRecorder

    torch.set_num_threads(1)
    sys.displayhook = lambda _: None
    recorder = TorchRecorder()
    recorder.start(sink)
    for name in names:
        sink.begin(name)
        signal.alarm(LIMIT_S)  # nobody handles it: it ends the process
        recorder.forget()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for reason, detail in run_examples(name):
                sink.skip("", reason, detail)
            with recorder.paused():
                _restore_global_state()
                sink.check()
    signal.alarm(0)


def run_examples(name: str) -> Iterator[tuple[str, str]]:
    """Runs the examples of one docstring in a fresh namespace; yields why some were unusable."""
    from fuzzing.torch_api.serializer import resolve

    try:
        examples = doctest.DocTestParser().get_examples(resolve(name).__doc__)
    except ValueError as error:
        yield "the examples cannot be read", str(error)
        return
    space = _namespace()
    for example in examples:
        needs = [reason for pattern, reason in _NEEDS if pattern.search(example.source)]
        if needs:
            yield needs[0], example.source
            continue
        try:
            code = compile(example.source, f"<{name}>", "single")
            exec(code, space)  # noqa: S102 - a docstring's code, run in the sandbox
        except (Exception, SystemExit) as error:  # noqa: BLE001 - some show what raises
            if example.exc_msg is None:
                yield "an example fails", repr(error)


def _namespace() -> dict[str, Any]:
    """The names that examples assume, with every generator at SEED."""
    import numpy as np
    import torch

    torch.default_generator.manual_seed(SEED)
    np.random.seed(SEED)
    random.seed(SEED)
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": np, "math": math}
    return {"__name__": "examples", **names}


def _restore_global_state() -> None:
    """Resets process-wide settings that examples changed."""
    import torch

    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_flush_denormal(False)
    torch.set_num_threads(1)
    if torch.get_default_device().type != "cpu":
        torch.set_default_device(None)


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    names = json.load(sys.stdin)
    descriptor = os.dup(1)
    os.dup2(2, 1)  # what examples print is not for our reader
    readable = (sys.prefix, sys.base_prefix, *fuzzing.__path__)
    isolation.enter(kernel.AllowedAccess((arguments[0],), FILE_BYTES, readable))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    run(names, DocSink(descriptor))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
