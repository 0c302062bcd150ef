"""Which release a repository's files ask for."""

from __future__ import annotations

import dataclasses

import pytest

from bot.config import parse_config
from bot.errors import ConfigError
from bot.toolchains import ToolchainSpec, resolve
from fuzzing import backends

SMALLEST = "version: 1\nbackend: openvino\n"


def spec(config: str = "", **files: str) -> ToolchainSpec:
    content = {name.replace("__", "/").replace("_", "."): text.encode() for name, text in files.items()}
    return resolve(parse_config((SMALLEST + config).encode()), content.get)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("openvino==2024.3.0", 1),
        ("# what we build on\nnumpy\nOpenVINO == 2024.3.0  # exact\n", 3),
        ("openvino==2024.3.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n", 1),
        ("openvino==2024.3.0; python_version >= '3.8'\nopenvino==2022.1.0; python_version < '3.8'\n", 1),
        ("openvino[extra]==2024.3.0\nopenvino==2024.3.0\n", 1),
        ("openvino==2024.3.0 \\", 1),
        ("-e .\n--index-url https://example.org\n\\\nopenvino==2024.3.0\n", 3),
    ],
)
def test_pins_in_requirements(text: str, line: int) -> None:
    found = spec(requirements_txt=text)
    assert found == ToolchainSpec("release", "openvino", ("openvino==2024.3.0",), "openvino 2024.3.0")
    assert found.source == f"requirements.txt, line {line}"


def test_pyproject_helps_out() -> None:
    project = '[project]\ndependencies = ["numpy", "openvino==2024.3.0"]\n'
    assert spec(requirements_txt="numpy\n", pyproject_toml=project).source == "pyproject.toml"
    assert spec("toolchain: {pin: pyproject.toml}", pyproject_toml=project).label == "openvino 2024.3.0"


def test_the_configured_file_and_package_are_used() -> None:
    config = "toolchain: {pin: ci/pins.txt, package: openvino-nightly, extra: [numpy==1.26.4]}"
    found = spec(config, ci__pins_txt="openvino-nightly==2023.0.0\nopenvino==2024.3.0\n")
    # openvino 2023.0 itself would need numpy<2; the repository's own word on numpy goes before it.
    assert found.requirements == ("openvino-nightly==2023.0.0", "numpy==1.26.4")


def test_what_an_old_release_needs_comes_from_its_backend() -> None:
    assert spec(requirements_txt="openvino==2023.1.0").requirements == ("openvino==2023.1.0", "numpy<2")


def test_a_short_version_is_understood() -> None:
    assert spec(requirements_txt="openvino==2023").requirements == ("openvino==2023", "numpy<2")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("openvino>=2024", r"line 1 of requirements.txt asks for 'openvino>=2024', which is not one release"),
        ("openvino 2024", "asks for 'openvino 2024', which is not one release"),
        ("numpy\nopenvino", r"line 2 of requirements.txt asks for 'openvino'"),
        ("openvino==2024.*", "write 'openvino==VERSION'"),
        ("openvino==2024.1.0,!=2024.2.0", "is not one release"),
        ("openvino @ file:///etc/passwd", "is not one release"),
        ("openvino===2024.1.0", "is not one release"),
        ("openvino==2024.1.0\nopenvino==2024.2.0", "several releases, 2024.1.0 and 2024.2.0; keep one"),
        ("numpy", "requirements.txt does not name openvino and pyproject.toml is not there"),
        ("\xff", "requirements.txt does not name openvino"),
    ],
)
def test_what_is_no_pin_is_told(text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint) as caught:
        spec(requirements_txt=text)
    assert caught.value.key == "toolchain.pin"


def test_the_digest_is_of_what_is_installed() -> None:
    one = spec(requirements_txt="openvino==2023.1.0")
    assert len(one.digest) == 64
    assert one.digest == spec(requirements_txt="# elsewhere\nopenvino==2023.1.0").digest
    assert one.digest != spec(requirements_txt="openvino==2023.2.0").digest
    assert one.digest == dataclasses.replace(one, requirements=one.requirements[::-1]).digest
    assert one.digest != dataclasses.replace(one, requirements=one.requirements[:1]).digest
    assert one.digest != dataclasses.replace(one, provisioner="existing").digest


@pytest.mark.parametrize(
    ("backend", "pins", "requirements"),
    [
        ("inductor", "torch==2.13.0\n", ("torch==2.13.0", "numpy")),
        (
            "iree",
            "iree-base-compiler==3.13.0\n",
            ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx"),
        ),
        ("tvm", "apache-tvm==0.27.0.post1\n", ("apache-tvm==0.27.0.post1", "onnx")),
    ],
)
def test_every_backend_says_what_its_release_needs(
    backend: str, pins: str, requirements: tuple[str, ...]
) -> None:
    config = parse_config(f"version: 1\nbackend: {backend}\n".encode())
    found = resolve(config, {"requirements.txt": pins.encode()}.get)
    assert found.requirements == requirements


def test_the_library_of_the_cases_is_in_the_toolchain() -> None:
    """torch programs are judged by the torch that hands them to the compiler."""
    torch = "sources: [torch-opinfo]\n"
    pins = "openvino==2026.4.1\ntorch==2.13.0\n"
    assert spec(torch, requirements_txt=pins).requirements == (
        *("openvino==2026.4.1", "torch==2.13.0"),
        "packaging",  # which its frontend for torch.export imports and its wheel does not require
    )
    extra = torch + "toolchain: {extra: [torch==2.12.0]}\n"
    assert spec(extra, requirements_txt=pins).requirements == (
        *("openvino==2026.4.1", "packaging", "torch==2.12.0"),
    )
    with pytest.raises(
        ConfigError, match=r"run in torch, which must be in the toolchain; pin it in req"
    ) as reported:
        spec(torch, requirements_txt="openvino==2026.4.1\n")
    assert reported.value.key == "toolchain.extra"
    assert spec(requirements_txt=pins).requirements == ("openvino==2026.4.1",)


@pytest.mark.parametrize("backend", ["openvino", "onnxruntime", "tvm"])
def test_the_packages_that_export_keras_programs_are_in_the_toolchain(backend: str) -> None:
    """Without onnx and onnxscript no Keras case is exported, so none tests the compiler."""
    package = backends.get(backend).package
    config = parse_config(f"version: 1\nbackend: {backend}\nsources: [keras-tests]\n".encode())
    pins = f"{package}==1.30.0\nkeras==3.15.1\ntorch==2.13.0\nonnxscript==0.7.2\n"
    found = resolve(config, {"requirements.txt": pins.encode()}.get)
    assert {"keras==3.15.1", "torch==2.13.0", "onnx", "onnxscript==0.7.2"} < set(found.requirements)
    plain = parse_config(f"version: 1\nbackend: {backend}\nsources: [onnx-node-tests]\n".encode())
    assert "onnxscript" not in " ".join(resolve(plain, {"requirements.txt": pins.encode()}.get).requirements)
