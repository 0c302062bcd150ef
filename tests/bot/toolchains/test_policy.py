"""What a service refuses to install or to run, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config import parse_config
from bot.errors import ConfigError, ProvisionError
from bot.isolation import Isolation
from bot.toolchains.policy import ToolchainPolicy, foreign_packages
from bot.toolchains.registry import ToolchainSpec

PINS = {"requirements.txt": b"openvino==2024.0.0\nopenvino-nightly==2024.1.0\n"}


def policy(level: str, required: str = "landlock", *packages: str) -> ToolchainPolicy:
    return ToolchainPolicy(required, packages, lambda: Isolation(level, {}))


def spec(*requirements: str, provisioner: str = "release") -> ToolchainSpec:
    return ToolchainSpec(provisioner, "openvino", requirements, "openvino 2024.0.0")


def config(package: str) -> bytes:
    return f"version: 1\nbackend: openvino\ntoolchain:\n  package: {package}\n".encode()


@pytest.mark.parametrize("package", ["openvino", "OpenVINO"])
def test_the_backends_own_package_may_be_asked_for(package: str) -> None:
    assert (
        policy("none").resolve(parse_config(config(package)), PINS.get).label.lower() == "openvino 2024.0.0"
    )


def test_another_package_needs_the_operator() -> None:
    requested = parse_config(config("openvino-nightly"))
    with pytest.raises(
        ConfigError, match=r"does not install 'openvino-nightly'.*ASSAY_TOOLCHAIN_PACKAGES"
    ) as caught:
        policy("namespaces").resolve(requested, PINS.get)
    assert caught.value.key == "toolchain.package"
    allowed = policy("namespaces", "landlock", "OpenVINO_nightly")
    assert allowed.resolve(requested, PINS.get).requirements[0] == "openvino-nightly==2024.1.0"


def test_what_is_foreign() -> None:
    assert foreign_packages(spec("openvino==2024.0.0", "numpy<2", "torch==2.5.0")) == []
    assert foreign_packages(spec("openvino==2024.0.0", "Evil_Extra==1.0")) == ["evil-extra"]
    assert foreign_packages(spec(provisioner="existing")) == [""]


@pytest.mark.parametrize(
    ("level", "required", "refused"),
    [
        ("namespaces", "namespaces", False),
        ("namespaces", "landlock", False),
        ("landlock", "landlock", False),
        ("landlock", "namespaces", True),
        ("none", "landlock", True),
        ("none", "none", False),
    ],
)
@pytest.mark.parametrize(
    "foreign", [spec("openvino==2024.0.0", "evil==1.0"), spec(provisioner="source")], ids=["package", "build"]
)
def test_foreign_code_needs_the_level_that_is_set(
    foreign: ToolchainSpec, level: str, required: str, *, refused: bool
) -> None:
    policy("none").check_isolation(spec("openvino==2024.0.0"))
    if not refused:
        policy(level, required).check_isolation(foreign)
        return
    with pytest.raises(
        ProvisionError, match=f"{required!r} is required .* {level!r}.*assay doctor"
    ) as caught:
        policy(level, required).provision(foreign, Path("nowhere"), print)
    assert not caught.value.transient
