"""Stacks of exceptions: which frames of a traceback say where the compiler failed."""

from __future__ import annotations

import re

MAX_FRAMES = 3  # ClusterFuzz's crash state: the top three that mean something

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
