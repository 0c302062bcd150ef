from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.campaigns.report_folder import report_folder


def test_each_run_has_its_own_folder(tmp_path: Path) -> None:
    wanted = tmp_path / "report"
    with report_folder(wanted) as first, report_folder(wanted) as second:
        assert (first, second) == (wanted, wanted / "2")
        for folder in (first, second):
            (folder / "report.json").write_text(folder.name)
    with report_folder(wanted) as third:
        assert third == wanted / "3"
    assert (wanted / "report.json").read_text() == "report"


def test_a_run_that_wrote_nothing_leaves_its_folder_free(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), report_folder(tmp_path):
        raise KeyboardInterrupt
    with report_folder(tmp_path) as folder:
        assert folder == tmp_path


def test_without_a_folder_nothing_is_left() -> None:
    with report_folder(None) as folder:
        assert folder.is_dir()
    assert not folder.exists()
