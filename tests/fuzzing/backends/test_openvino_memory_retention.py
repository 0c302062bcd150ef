"""What a process keeps of OpenVINO's memory, each time told by a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_TRIMMED = """
import ctypes
from fuzzing.backends.openvino import memory_retention

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def trimmed() -> int:
    blocks = [libc.malloc(100_000) for _ in range(50)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    for block in blocks[:-1]:  # the last one keeps them from the heap's end
        libc.free(block)
    return libc.malloc_trim(0)  # 1 if any memory was given back

before = trimmed()
memory_retention.retain_freed_memory()
memory_retention.retain_freed_memory()
print(before, trimmed())
"""

_FAULTS = """
import resource, sys
import numpy as np
import openvino
from fuzzing.backends.openvino import memory_retention

if sys.argv[1] == "kept":
    memory_retention.retain_freed_memory()
core = openvino.Core()
x = openvino.opset13.parameter([4, 8], np.float32)
model = openvino.Model([openvino.opset13.result(openvino.opset13.softmax(x, 1))], [x], "softmax")

def faults() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": "1"})
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(sorted(faults() for _ in range(9))[4])
"""

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="only glibc on x86-64 is made to keep memory",
)


def _told(program: str, *arguments: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def test_nothing_is_given_back_any_more() -> None:
    assert _told(_TRIMMED) == [1, 0]


@pytest.mark.compiler_openvino
def test_one_model_after_the_other_has_its_memory_mapped_once() -> None:
    [plain], [kept] = _told(_FAULTS, "plain"), _told(_FAULTS, "kept")
    assert kept < plain / 4, (kept, plain)
