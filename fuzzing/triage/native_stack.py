"""Crashes of a process: the runtime's message and the frames that faulthandler printed."""

from __future__ import annotations

import re

from fuzzing.compiler_messages import normalize_message

MAX_FRAMES = 3  # ClusterFuzz's crash state: the top three that mean something

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

#: Frames that every case passes on its way into native code: (pattern, whose they are).
_BINDING_FRAMES: tuple[tuple[str, str], ...] = (
    (r"(?:^|/)(?:_ov_api|ie_api|data_dispatcher|frontend)\.py:", "openvino's Python interface"),
    (r"(?:^|/)onnxruntime_inference_collection\.py:", "onnxruntime's Python interface"),
)
#: Frames that every case passes on its way into the compiler.
_ENTRY_FRAMES: tuple[tuple[str, str], ...] = (
    *_BINDING_FRAMES,
    (r"(?:^|/)(?:functools|contextlib|threading|runpy|concurrent/futures/\w+)\.py:", "the standard library"),
    (r"^<|(?:^|/)fuzzing/", "Python itself and Assay's worker"),
)
_BINDING_FRAME, _ENTRY_FRAME = (
    re.compile("|".join(pattern for pattern, _ in frames)) for frames in (_BINDING_FRAMES, _ENTRY_FRAMES)
)

#: Functions that call the converters of all operators: of TVM's frontends for ONNX and torch, of tinygrad's.
_DISPATCHER = re.compile(
    r"[.:](?:from_onnx|_construct_nodes|_convert_operator|from_exported_program|_translate_fx_graph"
    r"|OnnxRunner\.__call__)$"
)

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


def python_frames(traceback: tuple[str, ...]) -> tuple[str, ...]:
    """The innermost frames of "file:function" entries, outermost first, without entry frames.

    Innermost first, without folders.
    """
    inner = [frame for frame in reversed(traceback) if not _ENTRY_FRAME.search(frame)]
    return tuple(frame.rsplit("/", 1)[-1] for frame in inner[:MAX_FRAMES])


def exception_frames(traceback: tuple[str, ...]) -> tuple[str, ...]:
    """The innermost frames of what raised, as from `python_frames`; none if native code raised.

    The frames around a call into native code are the same wherever the native code fails.
    """
    if traceback and _BINDING_FRAME.search(traceback[-1]):
        return ()
    return python_frames(traceback)


def calling_converter(traceback: tuple[str, ...]) -> str:
    """The frontend's innermost frame, as "file:function", where code outside the frontend raised; else "".

    A check deep in the compiler refuses what several converters build, each of which is wrong by itself. The
    frontend is the folder of the outermost frame of the compiler.

    traceback  entries "file:function", outermost first; TVM's has its C++ functions, too
    """
    frames = [frame for frame in traceback if not _ENTRY_FRAME.search(frame)]
    if not frames or _folder(frames[-1]) == _folder(frames[0]):
        return ""
    inside = [frame for frame in frames if _folder(frame) == _folder(frames[0])]
    return inside[-1].rsplit("/", 1)[-1]


def is_dispatcher(frame: str) -> bool:
    """Whether a frontend's function calls the converters of all operators, and so names none of them."""
    return bool(_DISPATCHER.search(frame))


def _folder(frame: str) -> str:
    return frame.partition(":")[0].rpartition("/")[0]
