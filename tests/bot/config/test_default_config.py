"""The configuration of a repository that has none."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.config import default_config, parse_config
from bot.config.pins import find_pins
from bot.errors import ConfigError


def files(**content: str) -> dict[str, bytes]:
    return {name.replace("_", "."): text.encode() for name, text in content.items()}


def test_a_pin_in_requirements_decides_the_backend() -> None:
    config = default_config(files(requirements_txt="numpy\nOpenVINO==2024.0.0  # the compiler\n").get)
    assert config == parse_config(b"version: 1\nbackend: openvino\n")


def test_pyproject_is_second() -> None:
    project = '[project]\ndependencies = ["onnxruntime==1.20.0"]\n'
    config = default_config(files(requirements_txt="openvino>=2024\n", pyproject_toml=project).get)
    assert config is not None
    assert (config.backend, config.toolchain.pin) == ("onnxruntime", "pyproject.toml")


def test_the_first_pin_decides() -> None:
    config = default_config(files(requirements_txt="onnxruntime==1.20.0\nopenvino==2024.0.0\n").get)
    assert config is not None
    assert config.backend == "onnxruntime"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "numpy==1.26.4\n",
        "onnx==1.20.0\n",
        "openvino\n",
        "openvino==2024.*\n",
        "openvino @ https://example.org/openvino.whl\n",
        "openvino==2024.0.0; sys_platform == 'win32'\n",
        "-r openvino==2024.0.0\n",
        "# openvino==2024.0.0\n",
        "((( not a requirement\n",
    ],
)
def test_repositories_that_are_left_alone(text: str) -> None:
    assert default_config(files(requirements_txt=text).get) is None


def test_no_files_at_all() -> None:
    assert default_config(files().get) is None


@pytest.mark.parametrize(
    "text", ["project = 3\n", "[project]\ndependencies = 3\n", "[project]\ndependencies=[3]\n"]
)
def test_odd_but_valid_toml_says_nothing(text: str) -> None:
    assert default_config(files(pyproject_toml=text).get) is None


def test_broken_toml_is_told() -> None:
    with pytest.raises(ConfigError, match=r"pyproject.toml is not valid TOML.*line 1"):
        default_config(files(pyproject_toml="[project\n").get)


@given(
    st.one_of(st.binary(max_size=60), st.text("openvi=<>~!;[]@ \\'\"#.1\n_()", max_size=60).map(str.encode))
)
@example(b"n = 1" + b"0" * 5000)
@example(b"d = 0000-00-00")
@example(b"x = " + b"[" * 5000)
@example(b"openvino==1; python_version ~= 'x'")
@example(b"openvino==1; os_name > '1'")
@example(b"openvino==1; extra == 'x'")
@example(b"openvino==1 \\")
@pytest.mark.parametrize("file", ["requirements.txt", "pyproject.toml"])
def test_any_bytes_give_pins_or_a_config_error(file: str, content: bytes) -> None:
    try:
        pins = find_pins(content, file, ["openvino"])
    except ConfigError as error:
        reported = str(error)
    else:
        reported = "openvino" if pins else "nothing"
    assert reported in ("openvino", "nothing") or file in reported
