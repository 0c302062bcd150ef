"""Whether two failures of one case on two builds are one bug although their messages differ.

Releases reword messages, rename exceptions and move checks. The phase, the verdict, the operator's source
file and most words change seldom. They are weaker evidence than an equal symptom, and reports must show that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fuzzing.outcomes import Verdict

#: Of the words in the shorter of two complaints, how many the other must have, and how many that is at least.
#: Ours; docs/bisection.md measures them on the failures of ONNX's node tests on old releases.
MIN_SHARED_RATIO, MIN_SHARED_WORDS = 0.5, 2

#: Source files through which failures of everything pass: equal ones are no evidence.
GENERIC_FILES = frozenset(
    {"core.cpp", "frontend.cpp", "node.cpp", "plugin.cpp", "inference_session.cc", "graph.cc"}
)

#: OpenVINO moved the checks of `reshape.cpp` to `reshape_shape_inference.hpp` in 2023 and 2024.
_STEM = re.compile(r"(?:_shape_inference)?\.\w+$")
_WORD = re.compile(r"[A-Za-z]+")
#: Words of any complaint, and of checks.
_COMMON = frozenset(
    _WORD.findall(
        "a an and are at be by check error exception failed for from get has have in is it n name not of "
        "on or size static std the this to was were with"
    )
)


def explain_similarity(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Why two symptoms of one case may have one cause, as a sentence; "" if there is no evidence.

    one, other   fields of signatures (`fuzzing.triage.signature.compute_signature`); operators are ignored
    """
    if any(one[name] != other[name] for name in ("backend", "frontend", "phase", "verdict")):
        return ""
    if one["verdict"] != Verdict.CRASH.value:
        return ""  # the others have no words: what differs is what happened
    file = _source_stem(one)
    if file and file == _source_stem(other):
        return f"phase, verdict and the operator's source file ({file}) are the same"
    mine, others = (_words(str(each["complaint"])) for each in (one, other))
    shared = mine & others
    if len(shared) >= MIN_SHARED_WORDS and len(shared) >= MIN_SHARED_RATIO * min(len(mine), len(others)):
        return f"phase and verdict are the same, and the words {', '.join(sorted(shared))}"
    return ""


def _source_stem(fields: Mapping[str, Any]) -> str:
    """The stem of the one source file that complained; "" for generic files and for Python's frames."""
    frames = [str(frame) for frame in fields["frames"]]
    if len(frames) != 1 or ":" in frames[0] or frames[0] in GENERIC_FILES:
        return ""
    return _STEM.sub("", frames[0])


def _words(complaint: str) -> frozenset[str]:
    """The distinctive words of a complaint, in lower case; compound names are split."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", complaint.replace("_", " "))
    return frozenset(word.lower() for word in _WORD.findall(parts)) - _COMMON
