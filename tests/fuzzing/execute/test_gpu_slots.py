"""GPU slots, with a stand-in list of devices: one worker for each, whoever asks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzing import backends
from fuzzing.errors import ToolchainError
from fuzzing.execute import gpu_slots
from fuzzing.execute.supervisor import Supervisor
from tests.fuzzing.execute import probe_runner

#: As `nvidia-smi -L` prints it (NVIDIA's MIG user guide, "Device Enumeration").
LISTED = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
GPU 1: A100-SXM4-40GB (UUID: GPU-b1028956-cfa2-0990-bf4a-5da9abb51763)
  MIG 3g.20gb     Device  0: (UUID: MIG-4f4e1b2c-0d5a-5c9a-8b45-0d2b3a5e8f11)
  MIG 3g.20gb     Device  1: (UUID: MIG-GPU-b1028956-cfa2-0990-bf4a-5da9abb51763/2/0)
"""
HOLD = """
import sys
from fuzzing.execute.gpu_slots import GpuPool
print(GpuPool(["0", "1"]).acquire(0).name, flush=True)
sys.stdin.read()
"""
SEEN = "import os; result = os.environ['CUDA_VISIBLE_DEVICES']"


@pytest.fixture(autouse=True)
def _runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_a_device_in_parts_counts_as_its_parts() -> None:
    assert gpu_slots.parse_device_list(LISTED) == (
        "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77",
        "MIG-4f4e1b2c-0d5a-5c9a-8b45-0d2b3a5e8f11",
        "MIG-GPU-b1028956-cfa2-0990-bf4a-5da9abb51763/2/0",
    )
    assert gpu_slots.parse_device_list("No devices found.\n") == ()


def test_the_environment_says_which_devices_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu_slots.VISIBLE_DEVICES, "1, GPU-abc")
    assert gpu_slots.list_devices() == ("1", "GPU-abc")
    monkeypatch.setenv(gpu_slots.VISIBLE_DEVICES, "")
    assert gpu_slots.list_devices() == ()


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stand-in for nvidia-smi, first on the path."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.delenv(gpu_slots.VISIBLE_DEVICES, raising=False)
    yield program
    program.unlink(missing_ok=True)


def test_the_driver_is_asked(listing: Path) -> None:
    listing.write_text(f"#!/bin/sh\n[ $1 = -L ] && cat <<'END'\n{LISTED}END\n")
    listing.chmod(0o755)
    assert gpu_slots.list_devices() == gpu_slots.parse_device_list(LISTED)


def test_a_driver_that_fails_has_no_devices(listing: Path) -> None:
    listing.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\nexit 9\n")
    listing.chmod(0o755)
    assert gpu_slots.list_devices() == ()


def test_a_slot_is_held_by_one_until_it_is_left() -> None:
    first, second = gpu_slots.GpuPool(["0", "1"]), gpu_slots.GpuPool(["0", "1"])
    assert {first.acquire(0).name, second.acquire(0).name} == {"0", "1"}
    assert first.try_acquire() is None
    assert second.try_acquire() is None
    second.close()
    assert first.acquire(0).name == "1"
    first.close()


def test_a_slot_given_back_is_kept_for_the_next_worker() -> None:
    ours, others = gpu_slots.GpuPool(["0"]), gpu_slots.GpuPool(["0"])
    slot = ours.acquire(0)
    ours.return_slot(slot)
    assert others.try_acquire() is None
    assert ours.acquire(0) is slot
    ours.close()


def test_the_kernel_frees_what_a_killed_process_held() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "0\n"
        pool = gpu_slots.GpuPool(["0", "1"])
        assert pool.acquire(0).name == "1"
        with pytest.raises(ToolchainError, match="held by other runs"):
            pool.acquire(0)
        holder.kill()
        holder.wait()
        assert pool.acquire(0).name == "0"
        pool.close()


@pytest.mark.parametrize(
    ("backend", "advice"),
    [
        ("tensorrt", "run on another machine"),
        ("onnxruntime", "run on another machine, or on the device CPU"),
    ],
)
def test_where_there_is_no_device_only_those_that_the_compiler_has_are_named(
    monkeypatch: pytest.MonkeyPatch, backend: str, advice: str
) -> None:
    monkeypatch.setenv(gpu_slots.VISIBLE_DEVICES, "")
    with pytest.raises(ToolchainError) as reported:
        gpu_slots.GpuPool(kinds=backends.get(backend).devices)
    assert str(reported.value).endswith(f"; {advice}")


def seen_devices(count: int, workers: int, *, fresh: bool = False) -> list[str]:
    supervisor: Supervisor[str] = Supervisor(
        probe_runner.command(device="CUDA"), workers=workers, fresh=fresh
    )
    found = probe_runner.answers(supervisor, {str(number): SEEN for number in range(count)})
    return sorted(set(found.values()))


def test_each_worker_sees_its_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu_slots.VISIBLE_DEVICES, "4,GPU-7")
    assert seen_devices(6, workers=3, fresh=True) == ["4", "GPU-7"]
    pool = gpu_slots.GpuPool()
    held = pool.acquire(0)
    assert held.name == "4"  # free again once the run was over
    assert seen_devices(2, workers=3) == ["GPU-7"]
    pool.close()


def test_a_run_on_the_cpu_sees_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu_slots.VISIBLE_DEVICES, "0,1")
    supervisor: Supervisor[str] = Supervisor(probe_runner.command())
    assert probe_runner.answers(supervisor, {"": SEEN}) == {"": ""}


def test_no_device_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu_slots.VISIBLE_DEVICES, "")
    with pytest.raises(ToolchainError, match="no CUDA device here"):
        Supervisor(probe_runner.command(device="CUDA"))


def test_the_locks_of_others_are_not_touched(tmp_path: Path) -> None:
    import os

    (tmp_path / f"assay-gpu-{os.getuid()}").write_text("")
    with pytest.raises(ToolchainError, match="XDG_RUNTIME_DIR"):
        gpu_slots.GpuPool(["0"]).try_acquire()
