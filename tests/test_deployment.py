"""The files of docs/deployment, checked by the tools that read them."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compose_spec.models import ComposeSpecification
from ruamel.yaml import YAML

from bot.settings import PREFIX, Settings

kubernetes: Any = importlib.import_module("kubernetes_validate")  # it has no types

FOLDER = Path(__file__).parents[1] / "docs" / "deployment"
DOCKERFILES = sorted(FOLDER.glob("*.Dockerfile"))


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(FOLDER / name)
    return loaded


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint_finds_nothing(path: Path) -> None:
    found = subprocess.run(
        [Path(sys.executable).parent / "hadolint", path],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_images_are_built_from_the_wheel_and_run_without_root(path: Path) -> None:
    _, build, final = re.split(r"\n(?=FROM )", path.read_text())
    assert "pip wheel" in build
    assert "COPY" not in final, "only the wheel leaves the first stage"
    assert re.search(r"^USER [1-9]\d*$", final, re.MULTILINE)


def test_all_images_have_one_version_of_python() -> None:
    """Ray refuses nodes of another one, and so does a toolchain from the object store."""
    text = "".join(path.read_text() for path in DOCKERFILES)
    assert len(set(re.findall(r"(?:/python:|--python )(\d+\.\d+)", text))) == 1


def test_secrets_of_the_compose_file_reach_neither_git_nor_images() -> None:
    root = FOLDER.parents[1]
    for name in (".env", *load("compose.yaml")["services"]["service"]["env_file"]):
        for ignored in (".gitignore", ".dockerignore"):
            lines = (root / ignored).read_text().splitlines()
            assert f"docs/deployment/{name}" in [line.removeprefix("/") for line in lines]


def test_the_compose_file_fits_the_specification_and_names_what_exists() -> None:
    loaded = load("compose.yaml")
    ComposeSpecification.model_validate(loaded)
    service = loaded["services"]["service"]
    context = FOLDER / service["build"]["context"]
    assert (context / service["build"]["dockerfile"]).is_file()
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    assert set(service["environment"]) <= known
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    named = [mount.partition(":")[0] for one in loaded["services"].values() for mount in one["volumes"]]
    assert sorted(named) == sorted(loaded["volumes"])


def test_a_compose_file_that_does_not_fit_is_detected() -> None:
    loaded = load("compose.yaml")
    loaded["services"]["service"]["build"] = 7
    with pytest.raises(ValueError, match="build"):
        ComposeSpecification.model_validate(loaded)


def pods() -> list[dict[str, Any]]:
    spec = load("ray-cluster.yaml")["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}} | one["template"] for one in groups
    ]


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod["spec"]["containers"][0]["image"])
def test_kubernetes_accepts_the_pods_and_they_have_no_privileges(pod: dict[str, Any]) -> None:
    kubernetes.validate(pod, kubernetes.latest_version(), strict=True)
    for container in pod["spec"]["containers"]:
        assert container["securityContext"]["runAsNonRoot"]
        assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
        assert f"{container['image'].partition(':')[0].removeprefix('assay-')}.Dockerfile" in [
            path.name for path in DOCKERFILES
        ]


def test_kubernetes_would_refuse_a_misspelled_field() -> None:
    pod = pods()[0]
    pod["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(pod, kubernetes.latest_version(), strict=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
def test_systemd_reads_the_unit_and_finds_it_confined() -> None:
    found = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=50", FOLDER / "assay.service"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    assert set(re.findall(r"nknown \S+ '(\w+)'", found.stderr)) <= {"DelegateSubgroup"}, "systemd 254 has it"
    assert found.stderr.count("nknown") <= 1
