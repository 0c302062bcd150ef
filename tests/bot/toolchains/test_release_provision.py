"""Releases really installed: tiny ones without a network, and real ones with it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from bot.config import RepositoryConfig
from bot.errors import BrokenSourcesError, ProvisionError
from bot.toolchains import ReadyToolchain, ToolchainSpec, commit_toolchain, provision, resolve
from fuzzing import backends
from tests.support.wheels import make_wheel


class Tiny(backends.Backend):
    """A compiler of one line."""

    name: ClassVar[str] = "tiny"
    package: ClassVar[str] = "tinyc"
    import_name: ClassVar[str] = "tinyc"
    packages: ClassVar[tuple[str, ...]] = ("tinyc", "tinynum")


class Steps(list[str]):
    """What `progress` was told."""

    __call__ = list.append


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of tiny wheels, the only one there is, and a backend to go with it."""
    folder = tmp_path / "index"
    folder.mkdir()
    make_wheel(folder, "tinynum", "1.5")
    make_wheel(folder, "tinynum", "2.1")
    make_wheel(folder, "tinyc", "1.0", requires=("tinynum<2",))
    make_wheel(folder, "tinyc", "3.0", requires=("tinynum",))
    make_wheel(
        folder, "tinyc", "4.0", code="raise ImportError('libtiny.so.4: cannot open shared object file')"
    )
    make_wheel(folder, "tinyc", "5.0", code="import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    use_index(folder, tmp_path, monkeypatch)
    monkeypatch.setattr(backends, "get", lambda _: Tiny)
    monkeypatch.setattr(backends, "compilers", lambda: ("tiny",))
    return folder


def use_index(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    pass_smoke_test(monkeypatch)


def pass_smoke_test(monkeypatch: pytest.MonkeyPatch, failure: str = "") -> None:
    """The tiny compilers here have no adapter that a process of its own could load."""
    monkeypatch.setattr(commit_toolchain, "smoke_test", lambda _spec, _python: failure)


def spec(version: str) -> ToolchainSpec:
    config = RepositoryConfig(version=1, backend="tiny")
    return resolve(config, {"requirements.txt": f"tinyc=={version}\n".encode()}.get)


def versions_seen_by(python: str) -> str:
    code = "import tinyc, tinynum, sys; print(tinyc.__version__, tinynum.__version__, sys.prefix)"
    command = [python, "-B", "-c", code]  # what it imports is not to be compiled by the way
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.usefixtures("index")
def test_a_release_is_installed_once_and_runs(tmp_path: Path) -> None:
    steps = Steps()
    ready = provision(spec("1.0"), tmp_path / "data", steps)
    folder = tmp_path / "data" / "toolchains" / spec("1.0").digest
    assert versions_seen_by(ready.python) == f"1.0 1.5 {folder}"
    assert ready == ReadyToolchain(
        spec("1.0"),
        spec("1.0").digest,
        str(folder / "bin" / "python"),
        {"python": ready.versions["python"], "tinyc": "1.0", "tinynum": "1.5"},
        ("tinyc==1.0", "tinynum==1.5"),
    )
    assert ready.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert steps == [
        "tinyc 1.0: installing tinyc==1.0",
        "tinyc 1.0: importing it once",
        "tinyc 1.0: running the smoke test",
        "tinyc 1.0: installed",
    ]
    again = Steps()
    assert provision(spec("1.0"), tmp_path / "data", again) == ready
    assert again == ["tinyc 1.0: installed before"]
    record = json.loads((folder / "assay-toolchain.json").read_text())
    wheel = (tmp_path / "index" / "tinyc-1.0-py3-none-any.whl").read_bytes()
    assert record["hashes"]["tinyc==1.0"] == [f"sha256:{hashlib.sha256(wheel).hexdigest()}"]
    assert [path.name.partition(".")[0] for path in folder.rglob("site-packages/__pycache__/*")] == ["tinyc"]


@pytest.mark.usefixtures("index")
def test_two_releases_live_side_by_side(tmp_path: Path) -> None:
    old = provision(spec("1.0"), tmp_path, Steps())
    new = provision(spec("3.0"), tmp_path, Steps())
    assert versions_seen_by(old.python).startswith("1.0 1.5 ")
    assert versions_seen_by(new.python).startswith("3.0 2.1 ")


@pytest.mark.usefixtures("index")
def test_scripts_of_a_toolchain_bear_its_move(tmp_path: Path) -> None:
    ready = provision(spec("1.0"), tmp_path, Steps())
    folder = Path(ready.python).parents[1]
    texts = [path.read_text(errors="replace") for path in [folder / "pyvenv.cfg", *folder.glob("bin/*.py")]]
    assert texts
    assert not [text for text in texts if ".partial-" in text]


@pytest.mark.usefixtures("index")
def test_an_uninstallable_release_says_what_to_fix(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError) as caught:
        provision(spec("2.0"), tmp_path, Steps())
    lines = str(caught.value).splitlines()
    assert lines[0] == "tinyc 2.0 cannot be installed."
    assert "tinyc==2.0" in lines[1]
    assert lines[-1] == (
        "To fix: requirements.txt, line 1 pins it; releases nearby that can be installed: 1.0, 3.0"
    )
    assert len(lines) <= 4
    assert sorted(path.suffix for path in (tmp_path / "toolchains").iterdir()) == [".lock", ".used"]


@pytest.mark.usefixtures("index")
def test_an_index_that_does_not_answer_is_not_blamed_on_the_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_NO_INDEX")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(
        ProvisionError, match=r"tinyc 9.0 cannot be installed: the package index cannot"
    ) as caught:
        provision(spec("9.0"), tmp_path, Steps())
    assert "To fix" not in str(caught.value)
    assert "check the network and UV_DEFAULT_INDEX" in str(caught.value)


@pytest.mark.usefixtures("index")
def test_a_relative_data_folder_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ready = provision(spec("1.0"), Path("data"), Steps())
    assert Path(ready.python).is_absolute()
    assert versions_seen_by(ready.python).startswith("1.0 ")


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("version", "hint"),
    [
        ("4.0", r"cannot import tinyc \(exit status 1\):(.|\n)*libtiny.so.4: cannot open shared object file"),
        ("5.0", r"cannot import tinyc \(signal 11\)"),
    ],
)
def test_a_compiler_that_does_not_import_is_no_toolchain(version: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match=hint):
        provision(spec(version), tmp_path, Steps())
    assert sorted(path.suffix for path in (tmp_path / "toolchains").iterdir()) == [".lock", ".used"]


@pytest.mark.usefixtures("index")
def test_a_toolchain_whose_interpreter_is_gone_is_made_anew(tmp_path: Path) -> None:
    ready = provision(spec("1.0"), tmp_path, Steps())
    python = Path(ready.python)
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    steps = Steps()
    provision(spec("1.0"), tmp_path, steps)
    assert steps[-1] == "tinyc 1.0: installed"
    assert versions_seen_by(ready.python).startswith("1.0 ")


@pytest.mark.usefixtures("index")
def test_a_release_that_fails_the_smoke_test_accuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_smoke_test(monkeypatch, "the compiler fails on onnx relu(x + 1): crash in phase compile: boom")
    for first in (True, False):
        steps = Steps()
        with pytest.raises(BrokenSourcesError, match="fails on onnx relu"):
            provision(spec("1.0"), tmp_path, steps)
        assert bool(steps) == first, "it is not installed again"
    folder = tmp_path / "toolchains" / spec("1.0").digest
    assert {path.name for path in folder.iterdir()} == {"assay-failure.txt", "assay-toolchain.json"}


@pytest.mark.usefixtures("index")
def test_processes_that_want_one_release_install_it_once(tmp_path: Path) -> None:
    # Real processes with the real provisioner; the fake backend is registered in each.
    code = (
        "import sys; from pathlib import Path; from fuzzing import backends; from bot.toolchains import *\n"
        "from tests.bot.toolchains.test_release_provision import Tiny\n"
        "backends.get = lambda _: Tiny\n"
        "from bot.toolchains import commit_toolchain\n"
        "commit_toolchain.smoke_test = lambda *_: ''\n"
        "s = ToolchainSpec('release', 'tiny', ('tinyc==1.0',), 'tinyc 1.0')\n"
        "print('begun', flush=True); sys.stdin.readline(); provision(s, Path(sys.argv[1]), print)\n"
    )
    root = Path(__file__).parents[3]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )
        for _ in range(2)
    ]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    reported = sorted(process.communicate(timeout=600)[0].splitlines()[-1] for process in started)
    assert reported == ["tinyc 1.0: installed", "tinyc 1.0: installed before"]


def test_pip_settings_serve_where_uv_has_none(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_FIND_LINKS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert provision(spec("3.0"), tmp_path, Steps()).versions["tinyc"] == "3.0"


def test_nothing_of_ours_reaches_a_compiler(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os\nif 's3cret' in os.environ.values(): raise ImportError('leaked')\n"
    make_wheel(index, "tinyc", "6.0", code=code)
    for name in ("ASSAY_GITHUB_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "UV_INDEX_X_PASSWORD"):
        monkeypatch.setenv(name, "s3cret")
    provision(spec("6.0"), tmp_path, Steps())


@pytest.mark.network
def test_a_real_release(tmp_path: Path) -> None:
    config = RepositoryConfig(version=1, backend="openvino")
    wanted = resolve(config, {"requirements.txt": b"openvino==2023.1.0\n"}.get)
    ready = provision(wanted, tmp_path, Steps())
    assert ready.versions["openvino"] == "2023.1.0"
    assert ready.versions["numpy"].startswith("1.")
    assert ready.requirements == ("openvino==2023.1.0", f"numpy=={ready.versions['numpy']}")


@pytest.mark.network
def test_a_real_release_that_has_no_wheel_for_this_python(tmp_path: Path) -> None:
    config = RepositoryConfig(version=1, backend="openvino")
    wanted = resolve(config, {"requirements.txt": b"openvino==2022.1.0\n"}.get)
    with pytest.raises(ProvisionError, match=r"To fix: requirements.txt, line 1 pins it; .* 2023\.0\.0$"):
        provision(wanted, tmp_path, Steps())
