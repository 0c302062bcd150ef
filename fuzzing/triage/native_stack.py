"""Crashes of a process: the runtime's message and the frames that faulthandler printed."""

from __future__ import annotations

import re

from fuzzing.compiler_messages import normalize_message
from fuzzing.triage.python_stack import MAX_FRAMES, python_frames

#: (pattern, template, source); the first match counts.
_RUNTIME_MESSAGES: tuple[tuple[str, str, str], ...] = (
    (r"terminate called after throwing an instance of '([^'\n]+)'\s*(?:what\(\):\s*([^\n]+))?", r"\1: \2",
     "libstdc++"),
    (r"\bAssertion [`']((?:(?!Assertion [`'])[^\n]){1,500}?)' failed", r"Assertion '\1'", "assert(3)"),
    (r"((?:malloc|free|realloc|munmap_chunk)\(\): [^\n]+|double free or corruption[^\n]*"
     r"|corrupted (?:size vs\. prev_size|double-linked list)[^\n]*)", r"\1", "glibc's allocator"),
    (r"\*\*\* (stack smashing|buffer overflow) detected \*\*\*", r"\1 detected", "glibc's fortification"),
    (r"==\d+==ERROR: (AddressSanitizer: [\w-]+)", r"\1", "a sanitizer"),
)  # fmt: skip

_PYTHON_FRAME = re.compile(r'^  File "([^"\n]+)", line \d+ in (\S+)', re.MULTILINE)
_C_FRAME = re.compile(r'^  Binary file "[^"\n]*/([^"/\n]+)", at ([A-Za-z_]\w*)', re.MULTILINE)
_CURRENT = re.compile(r"^Current thread [^\n]*:\n((?:  [^\n]*\n?)*)", re.MULTILINE)
_C_STACK = re.compile(r"^Current thread's C stack trace[^\n]*:\n((?:  [^\n]*\n?)*)", re.MULTILINE)
_VERSIONED = re.compile(r"\.so[.\d]*$")


def runtime_message(text: str) -> str:
    """The normalized message of the C or C++ runtime; "" if there is none."""
    for pattern, message, _ in _RUNTIME_MESSAGES:
        found = re.search(pattern, text)
        if found:
            return normalize_message(found.expand(message)).strip(": ")
    return ""


def native_frames(native: str) -> tuple[str, ...]:
    """The innermost frames of a faulthandler dump that belong to the compiler, innermost first.

    C frames, which Python prints from 3.14 on, as "library:symbol"; else Python's as "file:function".
    """
    stack = _C_STACK.search(native)
    if stack:
        frames = [f"{_VERSIONED.sub('', lib)}:{symbol}" for lib, symbol in _C_FRAME.findall(stack[1])]
        inner = [frame for frame in frames if not frame.startswith(("libc:", "libpthread:", "python"))]
        return tuple(inner[:MAX_FRAMES])
    current = _CURRENT.search(native)
    found = _PYTHON_FRAME.findall(current[1]) if current else []
    return python_frames(tuple(f"{file}:{function}" for file, function in reversed(found)))
