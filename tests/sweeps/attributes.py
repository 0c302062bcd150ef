"""Cases of `onnx-attributes` that ONNX Runtime refuses: `python -m tests.sweeps.attributes`.

A second implementation takes every case, but for operators and types that it lacks: it refused windows of
padding alone, among others, which compilers were accused of. Prints the others; exit code 1 if there is one.
Takes two minutes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import onnxruntime

from fuzzing.cases import Tensor, TestCase
from fuzzing.migrate import onnx_attributes

#: What onnxruntime and its binding lack: operators, element types, zero points for each filter.
_LACKING = re.compile(r"NOT_IMPLEMENTED|Unexpected input data type|No corresponding Numpy type|not supported")


def find_refused() -> Iterator[tuple[str, str]]:
    """The test and the message of each case that is refused."""
    for item in onnx_attributes.migrate():
        if not isinstance(item, TestCase):
            continue
        given = {name: value.array() for name, value in item.inputs if isinstance(value, Tensor)}
        if len(given) < len(item.inputs):
            continue
        try:
            onnxruntime.InferenceSession(item.program.to_bytes()).run(None, given)
        except Exception as error:  # noqa: BLE001 - onnxruntime has a class for each kind
            if not _LACKING.search(str(error)):
                yield item.provenance.test, str(error)


def main() -> int:
    """Prints the refused cases."""
    refused = list(find_refused())
    for test, message in refused:
        print(f"{test}: {message[-200:]}")
    print(f"{len(refused)} cases refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
