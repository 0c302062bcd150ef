"""TensorRT, which no machine of ours can run: its calls beside its own signatures, its ways on a stand-in."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from fuzzing import backends
from fuzzing.backends.base import Named, Unsupported
from fuzzing.backends.tensorrt import BuildFailed, ParseFailed, RunFailed
from fuzzing.cases import OnnxModel, Tensor, TorchCall
from fuzzing.cases.arguments import TensorArg
from tests.fuzzing.backends import fake_tensorrt
from tests.fuzzing.backends.test_cuda_runtime import stand_in_for_cuda

BACKEND = Path(backends.__file__).parent / "tensorrt.py"
INSTALLED = importlib.util.find_spec("tensorrt") is not None
X = Tensor.of(np.array([[1, -2, 3]], np.float32))


@pytest.fixture
def fake_tensorrt_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler for the stand-in of the CUDA runtime")
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt)
    stand_in_for_cuda(tmp_path, monkeypatch)


def model(signature: str, body: str) -> OnnxModel:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g {signature} {{ {body} }}'
    return OnnxModel(onnx.parser.parse_model(text).SerializeToString())


def run(program: OnnxModel, inputs: Named, **options: str) -> Named:
    backend = backends.get("tensorrt")()
    backend.load("CUDA", options)
    return backend.run(backend.compile(backend.convert(program, inputs)), inputs)


def why(error: Exception) -> str | None:
    for pattern in backends.get("tensorrt").unsupported:
        found = re.search(pattern.message, str(error))
        if found and re.search(pattern.error, type(error).__name__):
            return found.expand(pattern.why)
    return None


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_values_go_through_an_engine_and_come_back_by_name() -> None:
    program = model(
        "(float[1,3] x, float[1,3] y) => (float[1,3] s, bool[1,3] g)", "s = Sub(x, y) g = Less(x, y)"
    )
    y = Tensor.of(np.array([[3, 2, 1]], np.float32))
    outputs = dict(run(program, [("y", y), ("x", X)]))
    assert outputs["s"] == Tensor.of(np.array([[-2, -4, 2]], np.float32))
    assert outputs["g"] == Tensor.of(np.array([[True, True, False]]))


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_an_output_has_the_shape_that_its_data_gives_it() -> None:
    program = model("(float[1,3] x) => (int64[2,N] y)", "z = Relu(x) y = NonZero(z)")
    assert run(program, [("x", X)]) == [("y", Tensor.of(np.array([[0, 0], [0, 2]])))]
    none = Tensor.of(np.zeros((1, 3), np.float32))
    assert run(program, [("x", none)]) == [("y", Tensor.of(np.zeros((2, 0), np.int64)))]


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_tf32_is_off_and_half_precision_is_asked_for() -> None:
    program = model("(float[1,3] x) => (float[1,3] y)", "y = Neg(x)")
    run(program, [("x", X)])
    assert fake_tensorrt.Builder.configured.set == set()
    run(program, [("x", X)], precision="fp16")
    assert fake_tensorrt.Builder.configured.set == {fake_tensorrt.BuilderFlag.FP16}


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_open_sizes_and_shape_tensors_get_a_profile_of_the_cases_own_inputs() -> None:
    program = model("(float[N,3] x, int64[2] shape) => (float[a,b] y)", "y = Reshape(x, shape)")
    shape = Tensor.of(np.array([3, 1]))
    [(_, found)] = run(program, [("x", X), ("shape", shape)])
    assert found == Tensor.of(np.array([[1], [-2], [3]], np.float32))
    [profile] = fake_tensorrt.Builder.configured.profiles
    assert profile.ranges == {"x": ((1, 3),) * 3, "shape": ([3, 1],) * 3}


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_what_the_parser_lacks_is_unsupported_and_what_it_calls_wrong_is_not() -> None:
    tf_idf = (
        "y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, "
        'mode = "TF", ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1]> (x)'
    )
    with pytest.raises(ParseFailed) as missing:
        run(model("(float[1,3] x) => (float[1,3] y)", tf_idf), [("x", X)])
    assert why(missing.value) == "no TfIdfVectorizer: no importer for it"
    with pytest.raises(ParseFailed, match="INVALID_GRAPH: model: no inputs") as wrong:
        run(model("(float[1,3] x) => (float[1,3] y)", "y = Concat <axis = 0> ()"), [("x", X)])
    assert why(wrong.value) is None


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_a_failure_is_told_in_the_loggers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    open_size = model("(float[N,3] x) => (float[N,3] y)", "y = Neg(x)")
    with monkeypatch.context() as patch:
        patch.setattr(fake_tensorrt.IBuilderConfig, "add_optimization_profile", lambda self, profile: -1)
        with pytest.raises(BuildFailed, match=r"\['x'\] need an optimization"):
            run(open_size, [("x", X)])
    bad = model(
        "(float[1,3] x) => (float[7,7] y)", "s = Constant <value = int64[2] {7, 7}> () y = Reshape(x, s)"
    )
    with pytest.raises(RunFailed, match="reshape"):
        run(bad, [("x", X)])


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_doubles_are_unsupported_not_computed_in_single_precision() -> None:
    program = model("(double[1,3] x) => (double[1,3] y)", "y = Neg(x)")
    with pytest.raises(Unsupported, match="no float64 input: it makes x FLOAT"):
        run(program, [("x", Tensor.of(np.ones((1, 3))))])


@pytest.mark.usefixtures("fake_tensorrt_modules")
def test_a_release_without_the_switch_refuses_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_tensorrt, "BuilderFlag", type("BuilderFlag", (), {"TF32": 7}))
    with pytest.raises(RuntimeError, match=r"strongly typed\. Use precision fp32"):
        backends.get("tensorrt")().load("CUDA", {"precision": "fp16"})


@pytest.mark.usefixtures("fake_tensorrt_modules")
@pytest.mark.skipif(importlib.util.find_spec("torch_tensorrt") is not None, reason="torch_tensorrt is here")
def test_torch_programs_need_torch_tensorrt() -> None:
    backend = backends.get("tensorrt")()
    backend.load("CUDA", {})
    with pytest.raises(Unsupported, match="torch programs need torch_tensorrt"):
        backend.convert(TorchCall("torch.neg", (TensorArg("x"),)), [("x", X)])


@pytest.mark.skipif(INSTALLED, reason="TensorRT's bindings are installed here")
def test_without_the_package_loading_says_what_to_install() -> None:
    with pytest.raises(
        ImportError, match="Its bindings need NVIDIA's libraries: install the package tensorrt"
    ):
        backends.get("tensorrt")().load("CUDA", {})


# The real bindings -------------------------------------------------------------------------------


def _needed(binary: Path) -> tuple[list[str], list[str]]:
    """NVIDIA's libraries that the bindings are linked to, and the functions that they want of them."""
    dynamic = subprocess.run(
        ["readelf", "-d", str(binary)], capture_output=True, text=True, check=True
    ).stdout
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", str(binary)], capture_output=True, text=True, check=True
    ).stdout
    wanted = [line.split()[-1] for line in symbols.splitlines()]
    return re.findall(r"NEEDED.*\[(libnv\S+)\]", dynamic), [
        name for name in wanted if re.fullmatch(r"(create|get|init)\w+", name)
    ]


def _without_faults(stub: str) -> str:
    """The stub without the one kind of line that is no Python: a default before an argument without one."""
    lines = []
    for line in stub.splitlines():
        found = re.match(r"( *def \w+\()(self, )?.*\.\.\.$", line)
        try:
            ast.parse(line.strip() if found else "")
        except SyntaxError:
            assert found
            line = f"{found[1]}{found[2] or ''}*args: Any, **kwargs: Any) -> Any: ..."
        lines.append(line)
    return "\n".join(["from typing import Any", "__version__: str", *lines])


@pytest.fixture(scope="module", params=["10.16.1.11", "11.4.0.106"])
def bindings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A release, and a folder with the real bindings and with stubs made of their own signatures.

    They import, as empty functions are linked in the place of NVIDIA's libraries.
    """
    if not all(map(shutil.which, ("gcc", "readelf", "nm"))):
        pytest.skip("no C compiler and binutils here")
    folder = tmp_path_factory.mktemp("bindings")
    package = f"tensorrt-cu12-bindings=={request.param}"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    subprocess.run([*uv, "--target", str(folder), package], check=True)
    libraries, functions = _needed(folder / "tensorrt_bindings" / "tensorrt.so")
    (folder / "empty.c").write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in functions))
    for library in libraries:
        command = ["gcc", "-shared", "-fPIC", "-o", str(folder / library), str(folder / "empty.c")]
        subprocess.run(command, check=True)
    environment = os.environ | {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": str(folder)}
    stubs = folder / "stubs"
    stubgen = [sys.executable, "-c", "from mypy.stubgen import main; main()"]  # compiled: -m finds no code
    command = [*stubgen, "-q", "-p", "tensorrt_bindings.tensorrt", "-o", str(stubs)]
    subprocess.run(command, check=True, env=environment)
    (stubs / "tensorrt").mkdir()
    made = (stubs / "tensorrt_bindings" / "tensorrt.pyi").read_text()
    (stubs / "tensorrt" / "__init__.pyi").write_text(_without_faults(made))
    return request.param, folder


@pytest.mark.network
def test_every_call_agrees_with_the_bindings_own_signatures(bindings: tuple[str, Path]) -> None:
    release, folder = bindings
    (folder / "mypy.ini").write_text(
        "[mypy]\nstrict = True\nwarn_unused_ignores = False\n"
        "[mypy-torch.*,torch_tensorrt.*]\nfollow_imports = skip\nignore_missing_imports = True\n"
    )
    environment = os.environ | {"MYPYPATH": str(folder / "stubs")}
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini")]
    command += ["--cache-dir", str(folder / "cache"), "-p", "fuzzing.backends.tensorrt"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=BACKEND.parents[2])
    errors = [
        line for line in done.stdout.splitlines() if "backends/tensorrt.py" in line and "error:" in line
    ]
    # Release 11 has no FP16 switch; load() refuses that option there.
    allowed = [] if release.startswith("10") else ['"type[BuilderFlag]" has no attribute "FP16"']
    assert len(errors) == len(allowed), done.stdout + done.stderr
    assert all(text in error for text, error in zip(allowed, errors, strict=True)), errors
    assert "error: Cannot find" not in done.stdout


@pytest.mark.network
def test_the_stand_in_has_no_name_that_the_bindings_lack(bindings: tuple[str, Path]) -> None:
    release, folder = bindings
    ours = {
        f"{kind.__name__}.{name}"
        for kind in vars(fake_tensorrt).values()
        if isinstance(kind, type) and kind.__module__ == fake_tensorrt.__name__
        for name in vars(kind)
        if not name.startswith("_") and name not in ("model", "configured")
    }
    script = (
        "import sys, tensorrt_bindings as t\n"
        "def has(name):\n"
        "    kind, _, member = name.partition('.')\n"
        "    return hasattr(getattr(t, kind), member)\n"
        "print(*[name for name in sys.argv[1:] if not has(name)])"
    )
    environment = os.environ | {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": str(folder)}
    command: list[Any] = [sys.executable, "-c", script, *sorted(ours)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ([] if release.startswith("10") else ["BuilderFlag.FP16"])


@pytest.mark.network
def test_the_bindings_alone_lack_nvidias_libraries_and_loading_says_so(bindings: tuple[str, Path]) -> None:
    _, folder = bindings
    (folder / "tensorrt.py").write_text("from tensorrt_bindings import *\n")
    script = "from fuzzing import backends\nbackends.get('tensorrt')().load('CUDA', {})"
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        cwd=BACKEND.parents[2],
    )
    assert re.search(r"ImportError: TensorRT cannot be loaded \(lib\w+\.so\.\d+: cannot open", done.stderr)
