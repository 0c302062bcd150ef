"""The worker needs the standard library, numpy and the compiler, nothing else (law 3)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import fuzzing
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from tests.support.venvs import venv_with

ROOT = Path(fuzzing.__file__).parent
OLDEST = (3, 8)

#: A backend that says what its process holds and can import, as strings.
SPY = """
import importlib.util, sys
import numpy as np
from fuzzing.backends.base import Backend, register
from fuzzing.cases.values import Tensor

@register
class Spy(Backend):
    name = "spy"
    package = import_name = "numpy"

    def load(self, device, options):
        self._wanted = options["wanted"]
        self._backend = options["backend"]

    def convert(self, program, inputs):
        return program

    def compile(self, model):
        import fuzzing.backends.base as base
        compiler = base.get(self._backend)()
        compiler.load("CPU", {})
        return model

    def run(self, executable, inputs):
        found = [name for name in self._wanted if importlib.util.find_spec(name) is not None]
        texts = {
            "modules": sorted(sys.modules),
            "found": found,
            "files": [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "fuzzing"],
        }
        return [(key, Tensor.of(np.array(items, object))) for key, items in texts.items()]
"""
OURS = ("bot", "tests", "templates", "onnx", "pydantic", "sqlalchemy", "click", "rich", "structlog", "github")


def case(program: bytes, *inputs: tuple[str, Tensor]) -> TestCase:
    return TestCase(OnnxModel(program), inputs, Provenance("tests", "", "", "", ""))


def spied(folder: Path, python: str, backend: str) -> dict[str, list[str]]:
    """What a worker of this interpreter, with this compiler loaded, holds and finds."""
    path = folder / "spy.py"
    path.write_text(SPY)
    options = {"wanted": [*OURS, "fuzzing", "numpy"], "backend": backend}
    supervisor: Supervisor[None] = Supervisor(WorkerCommand(python, str(path), options=options))
    [(_, execution)] = supervisor.run([(None, case(b"x"))])
    assert execution.ending == "returned", f"{execution.error}: {execution.message}"
    found = {}
    for name, value in execution.outputs:
        assert isinstance(value, Tensor)
        found[name] = [str(item) for item in value.array()]
    return found


COMPILERS = [
    pytest.param(name, marks=getattr(pytest.mark, f"compiler_{name}")) for name in ("onnxruntime", "openvino")
]


@pytest.mark.parametrize("backend", COMPILERS)
def test_every_module_of_the_worker_is_python_of_the_oldest_toolchains(backend: str, tmp_path: Path) -> None:
    files = [Path(name) for name in spied(tmp_path, sys.executable, backend)["files"] if name != "None"]
    names = {path.relative_to(ROOT).as_posix() for path in files}
    assert {
        "__init__.py",
        "execute/protocol.py",
        f"backends/{backend}/__init__.py",
        "cases/values.py",
    } <= names
    for path in [*files, ROOT / "execute" / "worker.py"]:
        ast.parse(path.read_text(), filename=str(path), feature_version=OLDEST)


@pytest.mark.parametrize("backend", COMPILERS)
def test_the_worker_holds_nothing_of_ours_but_fuzzing(backend: str, tmp_path: Path) -> None:
    seen = spied(tmp_path, sys.executable, backend)
    tops = {name.partition(".")[0] for name in seen["modules"]}
    assert "fuzzing" in tops
    assert not tops & {"bot", "tests", "pydantic", "sqlalchemy", "click", "rich", "structlog", "github"}
    assert all(Path(name).is_relative_to(ROOT) for name in seen["files"])


@pytest.mark.network
@pytest.mark.compiler_onnxruntime
def test_the_worker_works_where_the_compiler_alone_is_installed(tmp_path: Path) -> None:
    python = venv_with(tmp_path / "venv", "onnxruntime")
    seen = spied(tmp_path, str(python), "onnxruntime")
    assert seen["found"] == ["fuzzing", "numpy"]
    assert not {name.partition(".")[0] for name in seen["modules"]} & set(OURS)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] z) { z = Abs(x) }'
    )
    given = case(model.SerializeToString(), ("x", Tensor.of(np.array([1, -2], np.float32))))
    supervisor: Supervisor[None] = Supervisor(WorkerCommand(str(python), "onnxruntime"))
    [(_, execution)] = supervisor.run([(None, given)])
    assert execution.outputs == (("z", Tensor.of(np.array([1, 2], np.float32))),)
    assert supervisor.versions.keys() == {"python", "onnxruntime", "numpy"}, (
        "of its packages, those installed"
    )


IMPORT_ALL = """
import importlib, pkgutil, sys
import bot
names = [info.name for info in pkgutil.walk_packages(bot.__path__, "bot.")]
for name in names:
    if not name.endswith("__main__") and ".migrations" not in name:
        importlib.import_module(name)
print(len(names))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_control_plane_loads_no_compiler_and_no_library_under_test() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, timeout=300, check=True
    )
    count, names = done.stdout.splitlines()
    assert int(count) > 80
    loaded = set(names.split())
    assert {"bot", "fuzzing", "sqlalchemy", "fastapi"} <= loaded
    assert not loaded & {"onnx", "onnxruntime", "openvino", "torch", "tvm", "keras", "tensorrt", "ml_dtypes"}
