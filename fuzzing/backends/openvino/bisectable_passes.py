"""The parts that OpenVINO's CPU plugin can disable, and its models between passes.

Releases have no switch for transformations: the variable that disables the plugin's own exists only in builds
with ENABLE_DEBUG_CAPS. But releases do write the model to files after each pass (OV_ENABLE_SERIALIZE_TRACING,
read at each compilation; core/src/pass/manager.cpp), and the core library can evaluate a model by reference
kernels (`Model.evaluate`), which are independent of the plugin's.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from fuzzing.backends.base import APPLIED_PASS, Instrumentation, Unsupported

#: The first stage: the frontend's model.
CONVERSION = "conversion"

_TRACING = "OV_ENABLE_SERIALIZE_TRACING"
#: Names a file that receives a line for each pass, `t;NAME;MANAGER;NANOSECONDS;APPLIED`, where APPLIED is 1
#: if the pass changed the model (core/src/pass/manager.cpp, Profiler; 2026.4).
_PROFILE = "OV_ENABLE_PROFILE_PASS"
_FILE = re.compile(r"(.*?)_(\d{3,})_(.+)\.xml")
#: Parts of the CPU plugin, with the property that turns each off (intel_cpu/src/config.cpp).
_PROPERTIES: Dict[str, Tuple[str, str]] = {
    "snippets": ("SNIPPETS_MODE", "DISABLE"),
    "low precision transformations": ("LP_TRANSFORMS_MODE", "NO"),
    "cache of primitives": ("CPU_RUNTIME_CACHE_CAPACITY", "0"),
    "execution mode performance": ("EXECUTION_MODE_HINT", "ACCURACY"),
}


class Snapshot(NamedTuple):
    """A model after a stage, to be evaluated instead of run."""

    model: Any
    stage: str


def properties(instrumentation: Instrumentation) -> Dict[str, str]:
    """The properties that turn off the disabled parts; all parts are noted."""
    for name in _PROPERTIES:
        instrumentation.note("bisectable_pass", name)
    return dict(_PROPERTIES[name] for name in _PROPERTIES if name in instrumentation.disabled)


@contextmanager
def dump_passes() -> Iterator[Path]:
    """A temporary folder that receives the model after each pass of compilations in the block."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="passes-") as folder:
        os.chdir(folder)
        os.environ[_TRACING] = "true"
        try:
            yield Path(folder)
        finally:
            del os.environ[_TRACING]
            os.chdir(str(before))


@contextmanager
def note_applied(instrumentation: Instrumentation) -> Iterator[None]:
    """Notes the passes that change the model of compilations in the block."""
    if not instrumentation.coverage:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="passes-") as folder:
        profile = Path(folder) / "passes.csv"
        os.environ[_PROFILE] = str(profile)
        try:
            yield
        finally:
            del os.environ[_PROFILE]
            lines = profile.read_text(errors="replace").splitlines() if profile.exists() else []
            for fields in [line.split(";") for line in lines]:
                if fields[0] == "t" and fields[-1] == "1":
                    instrumentation.note(APPLIED_PASS, f"{fields[2]}/{fields[1]}")


def list_stages(folder: Path) -> List[Tuple[str, Path]]:
    """The passes in order, with the file of the model after each; repeated passes are numbered.

    Passes on the bodies of subgraphs, which are models of other names, are left out.
    """
    found = []
    for path in folder.iterdir():
        match = _FILE.fullmatch(path.name)
        if match:
            found.append((int(match.group(2)), match.group(1), match.group(3), path))
    first = min(found)[1] if found else ""
    named: List[Tuple[str, Path]] = []
    times: Dict[str, int] = {}
    for _, model, name, path in sorted(found):
        if model == first:
            times[name] = times.get(name, 0) + 1
            named.append((name if times[name] == 1 else f"{name} ({times[name]})", path))
    return named


def evaluate(ov: Any, snapshot: Snapshot, tensors: List[Any]) -> List[Any]:
    """The outputs of a model by the core library's reference kernels.

    Raises Unsupported if an operator has none.
    """
    model = snapshot.model
    outputs = [ov.Tensor(port.get_element_type(), ov.Shape([0])) for port in model.outputs]
    try:
        done = model.evaluate(outputs, tensors)
    except RuntimeError as error:
        raise Unsupported(f"no reference kernel after {snapshot.stage}: {_reason(error)}") from error
    if not done:
        raise Unsupported(f"no reference kernel after {snapshot.stage}")
    return outputs


def _reason(error: Exception) -> str:
    match = re.search(r"Evaluation failed on (\S+)", str(error))
    return match.group(1) if match else str(error).strip().splitlines()[-1]
