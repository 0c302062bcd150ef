from __future__ import annotations

import pytest

from fuzzing.triage.native_stack import native_frames, runtime_message

DUMP = """Fatal Python error: Segmentation fault

Thread 0x00007f5f59bff6c0 (most recent call first):
  File "/usr/lib/python3.11/concurrent/futures/thread.py", line 81 in _worker

Current thread 0x00007f5f63405b80 (most recent call first):
  File "/venv/lib/python3.11/site-packages/mlc/runtime/ir.py", line 77 in lower
  File "/venv/lib/python3.11/site-packages/mlc/passes.py", line 12 in run
  File "/venv/lib/python3.11/site-packages/openvino/runtime/ie_api.py", line 500 in read_model
  File "/assay/fuzzing/execute/worker.py", line 29 in <module>

Extension modules: numpy.core._multiarray_umath (total: 1)
"""

C_STACK = (
    DUMP
    + """
Current thread's C stack trace (most recent call first):
  Binary file "/usr/lib/libc.so.6", at gsignal+0x12 [0x7f00]
  Binary file "/venv/openvino/libs/libopenvino.so.2430", at _ZN2ov4Node8validateEv+0x45 [0x7f01]
  Binary file "/venv/openvino/libs/libopenvino.so.2430", at _ZN2ov5Model3runEv+0x9 [0x7f02]
"""
)


def test_the_current_threads_frames_innermost_first() -> None:
    assert native_frames(DUMP) == ("ir.py:lower", "passes.py:run")


def test_c_frames_are_better() -> None:
    assert native_frames(C_STACK) == ("libopenvino:_ZN2ov4Node8validateEv", "libopenvino:_ZN2ov5Model3runEv")


@pytest.mark.parametrize("text", ["", "Fatal Python error: Aborted", "Current thread"])
def test_no_frames(text: str) -> None:
    assert native_frames(text) == ()


@pytest.mark.parametrize(
    ("log", "output"),
    [
        (
            "noise\nterminate called after throwing an instance of 'std::out_of_range'\n"
            "  what():  vector::_M_range_check: __n (which is 3) >= this->size() (which is 3)\n",
            "std::out_of_range: vector::_M_range_check: __n (which is N) >= this->size() (which is N)",
        ),
        ("terminate called after throwing an instance of 'int'\nAborted\n", "int"),
        ("python: /src/llvm/lib/IR/Value.cpp:12: void f(): Assertion `a->b() && \"x\"' failed.\n",
         "Assertion 'a->b() && \"x\"'"),
        ("malloc(): corrupted top size\n", "malloc(): corrupted top size"),
        ("double free or corruption (out)\n", "double free or corruption (out)"),
        ("*** stack smashing detected ***: terminated\n", "stack smashing detected"),
        ("==123==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n",
         "AddressSanitizer: heap-buffer-overflow"),
        ("all is well\n", ""),
    ],
)  # fmt: skip
def test_last_words(log: str, output: str) -> None:
    assert runtime_message(log) == output
