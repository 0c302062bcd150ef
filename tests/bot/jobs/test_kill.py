"""A job killed with SIGKILL before or after any of its commits leaves what one leaves that lived."""

from __future__ import annotations

from pathlib import Path

from tests.support.crash_points import run_killing_program


def test_a_kill_at_any_commit_changes_nothing(tmp_path: Path) -> None:
    calm, *killed = run_killing_program("tests.bot.jobs.killing", str(tmp_path))
    assert calm["lives"] == 1
    (bug,) = calm["rows"]["bugs"]
    assert bug["state"] == "closed"
    assert len(calm["rows"]["retests"]) == 2
    kinds = sorted(effect["kind"] for effect in calm["rows"]["effects"])
    assert kinds == ["comment", "comment", "issue_state"], "the proof, and the answer to who asked"
    assert {"before commit 1", "after commit 1", "before commit 3"} <= {
        one["killed"] for one in killed if one["lives"] == 2
    }
    for one in killed:
        assert one["rows"] == calm["rows"], one["killed"]
