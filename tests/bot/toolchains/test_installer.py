"""uv's words boiled down, and whose index settings it gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.toolchains.installer import reason, uv_environment


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    pip = tmp_path / "pip.conf"
    pip.write_text(
        "[global]\nindex-url = https://one.example/simple\nextra-index-url =\n  https://two.example\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(pip))


def test_pip_configuration_is_taken_over_in_pips_sense() -> None:
    env = uv_environment()
    assert env["UV_DEFAULT_INDEX"] == "https://one.example/simple"
    assert env["UV_INDEX"] == "https://two.example"
    assert env["UV_INDEX_STRATEGY"] == "unsafe-best-match"


def test_a_variable_goes_before_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://three.example/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/a /b")
    env = uv_environment()
    assert (env["UV_DEFAULT_INDEX"], env["UV_FIND_LINKS"]) == ("https://three.example/simple", "/a,/b")


def test_settings_of_uv_go_before_pips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine.example/simple")
    env = uv_environment()
    assert env["UV_DEFAULT_INDEX"] == "https://mine.example/simple"
    assert "UV_INDEX" not in env


def test_a_configuration_file_of_uv_goes_before_pips(tmp_path: Path) -> None:
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "uv.toml").write_text("")
    assert "UV_DEFAULT_INDEX" not in uv_environment()


def test_what_would_install_elsewhere_or_leak_is_kept_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_NO_BINARY", "ASSAY_WEBHOOK_SECRET", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "x")
    assert not {"UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_NO_BINARY"} & set(uv_environment())
    assert not {"ASSAY_WEBHOOK_SECRET", "GITHUB_TOKEN"} & set(uv_environment())


@pytest.mark.parametrize(
    ("stderr", "reported"),
    [
        (
            "Using Python 3.11.7 environment at: x\nerror: No solution found when resolving dependencies\n"
            "  cause: Because a==1 was not found, we can conclude that.\n\nhint: look elsewhere\n"
            "hint: third\n",
            "Because a==1 was not found, we can conclude that.\nlook elsewhere",
        ),
        (
            "error: Request failed after 3 retries in 4.7s\n  cause: Failed to fetch: http://u:p@h/simple/a/\n"
            "  cause: Connection refused (os error 111)\n",
            "the package index cannot be reached: Connection refused (os error 111)\n"
            "check the network and UV_DEFAULT_INDEX",
        ),
        ("error: Failed to read http://user:secret@h/x\n", "Failed to read http://h/x"),
        ("", "uv failed without a message"),
        ("something odd\n", "something odd"),
    ],
)
def test_reasons_are_two_lines_without_passwords(stderr: str, reported: str) -> None:
    assert reason(stderr) == reported
