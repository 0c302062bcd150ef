"""Overhead of recording torch: the time of a command with and without the recorder.

Three workloads: a pytest file of 160 small tests, a script that trains a small network, and torch's operator
samples as torch's own tests call them. Each runs plain and recorded in turn. Start-up and imports are
measured separately and subtracted, so the ratio is of the tests' own time.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fuzzing.migrate.recorders import injection, recording_file
from tests.benchmarks._common import machine, verdict

BAR = 2.0  # times the test's own time

TESTS = """
import pytest
import torch
import torch.nn.functional as F

SHAPES = [(3,), (2, 3), (2, 3, 4), (1, 3, 8, 8), (0, 3), (5, 1, 2)]

@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", "sin exp sigmoid abs neg floor sqrt tanh erf atan".split())
def test_pointwise(name, shape):
    x = torch.rand(shape)
    function = getattr(torch, name)
    torch.testing.assert_close(function(x), getattr(x, name)())
    torch.testing.assert_close(function(x, out=torch.empty(shape)), function(x.double()).float())

@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["add", "mul", "sub", "div", "maximum", "minimum", "atan2", "hypot"])
def test_binary(name, shape):
    x, y = torch.rand(shape), torch.rand(shape) + 1
    function = getattr(torch, name)
    torch.testing.assert_close(function(x, y), function(x.double(), y.double()).float())

@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("channels", [1, 4])
def test_convolution(channels, kernel, padding, stride):
    layer = torch.nn.Conv2d(3, channels, kernel, stride=stride, padding=padding)
    x = torch.rand(2, 3, 9, 9, requires_grad=True)
    y = layer(x)
    torch.testing.assert_close(y, F.conv2d(x, layer.weight, layer.bias, stride, padding))
    y.sum().backward()
    assert x.grad.shape == x.shape

@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "std", "logsumexp"])
def test_reduction(name, keepdim, dim):
    x = torch.rand(4, 5, 6)
    y = getattr(torch, name)(x, dim, keepdim=keepdim)
    assert y.dim() == 2 + keepdim
    assert bool(torch.isfinite(y).all())
"""

TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
stem = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
model = nn.Sequential(stem, nn.Flatten(), nn.Linear(8 * 14 * 14, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(300):
    x = torch.rand(16, 1, 16, 16)
    labels = (x.mean(dim=(1, 2, 3)) * 10).long().clamp(0, 9)
    loss = nn.functional.cross_entropy(model(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    accuracy = (model(x).argmax(1) == labels).float().mean().item()
"""

SAMPLES = """
import warnings
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

warnings.simplefilter("ignore")
test = TestCase()
for entry in op_db[::6]:
    if not entry.supports_dtype(torch.float32, "cpu"):
        continue
    for sample in entry.sample_inputs("cpu", torch.float32):
        try:
            one = entry(sample.input, *sample.args, **sample.kwargs)
            test.assertEqual(one, entry(sample.input, *sample.args, **sample.kwargs))
        except (RuntimeError, AssertionError):
            pass  # random operators, and those that write to their input
"""

EMPTY = "import torch\n"
#: Imports of each before its tests begin.
STARTS = {
    "pytest file": "import torch\nimport torch.nn.functional as F\ndef test_nothing():\n    pass\n",
    "training script": EMPTY,
    "torch's samples": "import torch\nfrom torch.testing._internal.common_methods_invocations import op_db\n"
    "from torch.testing._internal.common_utils import TestCase\n",
}
WORKLOADS = {"pytest file": TESTS, "training script": TRAINING, "torch's samples": SAMPLES}


def command(name: str, script: Path) -> list[str]:
    """The command of a workload."""
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if name == "pytest file" else []
    return [sys.executable, *pytest, str(script)]


def seconds(arguments: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU time of a command, which must succeed."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def recorded_cases(folder: Path) -> int:
    """The number of recorded cases in a folder."""
    frames = [
        frame
        for path in folder.glob(f"*{recording_file.SUFFIX}")
        for frame in recording_file.read_headers(path)
    ]
    return sum("case" in frame for frame in frames)


def ratio(name: str, rounds: int, plain: dict[str, str]) -> float:
    """Runs a workload plain and recorded in turn; prints and returns the ratio of CPU times."""
    walls: dict[str, list[float]] = {}
    cpus: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="assay-recording-") as scratch:
        folder = Path(scratch)
        scripts = {"start": folder / "test_start.py", "work": folder / "test_work.py"}
        scripts["start"].write_text(STARTS[name])
        scripts["work"].write_text(WORKLOADS[name])
        cases = 0
        for number in range(rounds):
            for what, script in scripts.items():
                record = folder / f"{what}-{number}"
                record.mkdir()
                watched = injection.make_environment("torch", str(record), plain)
                for how, environment in (("plain", plain), ("recorded", watched)):
                    wall, cpu = seconds(command(name, script), environment)
                    walls.setdefault(f"{what} {how}", []).append(wall)
                    cpus.setdefault(f"{what} {how}", []).append(cpu)
                cases = recorded_cases(record)
    cpu_s, wall_s = ({key: statistics.median(times) for key, times in all_.items()} for all_ in (cpus, walls))
    own = {how: cpu_s[f"work {how}"] - cpu_s[f"start {how}"] for how in ("plain", "recorded")}
    print(
        f"{name}: {cases} instances; the tests {own['plain']:.2f} s plain, {own['recorded']:.2f} s recorded: "
        f"{own['recorded'] / own['plain']:.2f} x; start-up {cpu_s['start plain']:.2f} s and "
        f"{cpu_s['start recorded']:.2f} s; the command {cpu_s['work recorded'] / cpu_s['work plain']:.2f} x, "
        f"by the clock {wall_s['work recorded'] / wall_s['work plain']:.2f} x",
        flush=True,
    )
    return own["recorded"] / own["plain"]


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks recording")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=WORKLOADS, action="append", help="this command; all if not given")
    args = parser.parse_args(argv)
    print(machine())
    plain = {**os.environ, "OMP_NUM_THREADS": "1"}
    worst = max(ratio(name, args.rounds, plain) for name in args.only or WORKLOADS)
    return verdict(worst <= BAR, f"recording takes at most {BAR:.0f} x the tests' own time")
