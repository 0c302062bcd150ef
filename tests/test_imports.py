"""A service has no torch: what it starts must be importable without the libraries and compilers."""

from __future__ import annotations

import json
import subprocess
import sys

#: Packages of extras, and what may import one when it is imported itself: it is only used on its programs.
ABSENT = ("iree", "keras", "onnxruntime", "openvino", "tensorrt", "tinygrad", "torch", "tvm")
THEIRS = (
    "fuzzing.backends.shared.torch_decomposition_tables",
    "fuzzing.backends.shared.torch_float64",
    "fuzzing.backends.torch_eager.undefined_results",
    "fuzzing.mutate.programs.",
)

PROBE = """
import importlib, json, pkgutil, sys
absent = json.loads(sys.argv[1])


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
import bot, fuzzing

failed = {}
for package in (bot, fuzzing):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None):
        if module.name.endswith(".__main__"):
            continue  # a command, which would run
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            failed[module.name] = error.name
print(json.dumps(failed))
"""


def test_every_module_is_imported_without_libraries_and_compilers() -> None:
    """Formats, rules and backends are found by importing their folder, so one module breaks all of them."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(ABSENT)], capture_output=True, text=True, check=True
    )
    failed = json.loads(done.stdout.splitlines()[-1])
    assert {name: absent for name, absent in failed.items() if not name.startswith(THEIRS)} == {}
    assert any(name.startswith("fuzzing.mutate.programs.") for name in failed), "torch was not absent"
