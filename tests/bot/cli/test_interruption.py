from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.campaigns.progress import Progress
from bot.cli.campaigns.interruption import Interruption
from bot.store.models import CampaignState


@pytest.fixture(autouse=True)
def _signals_as_on_a_terminal() -> Iterator[None]:
    """What a shell runs in the background ignores SIGINT, the tests as well."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def begin(interruption: Interruption, state: CampaignState) -> None:
    interruption.watched(lambda _progress: None)(Progress(1, state, 0, 0, ""))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_early_and_the_second_at_once(number: signal.Signals) -> None:
    """Unless it comes with the first one: `timeout` sends two."""
    seconds = 10.0
    with Interruption(lambda: seconds) as interruption:
        begin(interruption, CampaignState.RUNNING)
        codes = [interruption.exit_code]
        os.kill(os.getpid(), number)
        assert interruption.end_early.is_set()
        codes.append(interruption.exit_code)
        assert codes == [None, 128 + number]
        seconds += 0.5
        os.kill(os.getpid(), number)
        seconds += 0.5
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_before_a_case_ran_there_is_nothing_to_report() -> None:
    with Interruption() as interruption:
        begin(interruption, CampaignState.PLANNING)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert not interruption.end_early.is_set()


def test_it_stays_armed_for_the_next_campaign() -> None:
    with Interruption() as interruption:
        begin(interruption, CampaignState.REPORTING)
        begin(interruption, CampaignState.PLANNING)
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.end_early.is_set()


def test_handlers_are_put_back_and_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    term = signal.getsignal(signal.SIGTERM)
    try:
        with Interruption() as interruption:
            begin(interruption, CampaignState.RUNNING)
            os.kill(os.getpid(), signal.SIGINT)
            assert not interruption.end_early.is_set()
            assert signal.getsignal(signal.SIGTERM) != term
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == term
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.compiler_onnxruntime
def test_a_campaign_that_got_sigterm_writes_its_report_and_the_next_one_goes_on(tmp_path: Path) -> None:
    report = tmp_path / "report"
    command = [sys.executable, "-m", "bot.cli", "run", "--backend", "onnxruntime", "--report", str(report)]
    command += ["--source", "onnx-node-tests", "--workers", "1", "--json"]
    environment = os.environ | {"ASSAY_DATA_DIR": str(tmp_path / "data")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        lines = list[str]()
        for line in process.stderr:
            lines.append(line)
            if "running cases at head: " in line:
                break
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM, "".join(lines) + errors
    assert "ending early" in errors
    result = json.loads(output)
    ran, planned = result["cases"]["run"], result["cases"]["planned"]
    assert 0 < ran < planned
    assert json.loads((report / "report.json").read_text())["cases"]["run"] == ran
    assert (report / "report.html").exists()
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    result = json.loads(again.stdout)
    assert result["cached"]["head"] == ran
    assert result["cases"]["run"] == planned
