"""The `ray` runner: parts of shards as tasks of a Ray cluster that exists already.

Ray places tasks, starts machines and notices lost ones; retries are ours, because only we know which outcomes
arrived. Nodes need Assay, and the toolchains at the same path or in an object store. Ray's own messages are
pickled: every process of the cluster is trusted, and cases run below them in the sandbox.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.errors import RunnerError, RunnerLostError, SettingsError
from bot.runners.bundle import pack_shard, run_bundle
from bot.runners.event_lines import MalformedLineError, parse_line
from bot.runners.parts import run_parts, split_shard
from bot.runners.protocol import OnEvent, RunnerOptions, Shard, runner
from bot.runners.toolchain_archives import ToolchainArchives
from fuzzing.execute.gpu_slots import CUDA_DEVICE
from fuzzing.execute.shard import Shard as CaseShard

_POLL_S = 0.2  # how soon a stop is noticed


@runner("ray")
def make(options: RunnerOptions) -> RayRunner:
    """The runner for the settings."""
    return RayRunner(options.ray_address, options.labels, options.archives)


class RayRunner:
    """Runs shards on the cluster at `address` ("auto" for the one of this machine).

    labels    NAME=VALUE texts, which a node must have as Ray labels; such as accelerator-type=H100
    archives  of toolchains, for nodes that do not share our disk

    Raises SettingsError without Ray, RunnerError without the cluster.
    """

    def __init__(
        self,
        address: str = "auto",
        labels: tuple[str, ...] = (),
        archives: ToolchainArchives | None = None,
    ) -> None:
        self._archives = archives
        self._labels = dict(label.partition("=")[::2] for label in labels)
        self._ray = _connect(address)
        self._task = self._ray.remote(num_returns="streaming", max_retries=0)(_run_part)

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """See `bot.runners.protocol.Runner.run`."""
        kind = "GPU" if shard.device == CUDA_DEVICE else "CPU"
        slots = int(self._ray.cluster_resources().get(kind, 0))
        if slots < 1:
            raise RunnerError(f"the Ray cluster has no {kind}; add a node to it")
        # One for each core: more would start the compiler more often, for parts that are equal anyway.
        run_parts(split_shard(shard, slots), self._run_part, on_event, stop)

    def _run_part(self, part: CaseShard, on_event: OnEvent, stop: threading.Event) -> None:
        ray = self._ray
        part = CaseShard.from_json(part.to_json() | {"workers": 1})
        needs: dict[str, Any] = {"num_gpus": 1} if part.device == CUDA_DEVICE else {"num_cpus": 1}
        if self._labels:
            needs["label_selector"] = self._labels
        bundle = pack_shard(part, self._archives.publish(part.python) if self._archives else None)
        results = self._task.options(scheduling_strategy="SPREAD", **needs).remote(bundle)
        try:
            self._take(results, on_event, stop)
        except ray.exceptions.TaskCancelledError:
            return
        except MalformedLineError as error:
            raise RunnerError(f"a task of the Ray cluster sent {error}") from None
        except ray.exceptions.RayTaskError as error:  # our code there raised
            raise RunnerError(f"a task of the Ray cluster failed: {error}") from error
        except ray.exceptions.RayError as error:
            raise RunnerLostError(f"a node of the Ray cluster is gone: {type(error).__name__}") from error
        finally:
            ray.cancel(results, force=True)

    def _take(self, results: Any, on_event: OnEvent, stop: threading.Event) -> None:
        """Passes on the events of a task, until it has ended or `stop` is set."""
        while not stop.is_set():
            ready, _ = self._ray.wait([results], timeout=_POLL_S)
            if not ready:
                continue
            try:
                found = next(results)
            except StopIteration:
                return
            for line in self._ray.get(found):
                on_event(parse_line(line))


def _run_part(bundle: bytes) -> Iterator[list[bytes]]:
    """The task: runs a bundle on its node."""
    with tempfile.TemporaryDirectory(prefix="assay-ray-") as folder:
        for batch in run_bundle(bundle, Path(folder), threading.Event()):
            if batch:
                yield batch


def _connect(address: str) -> Any:
    """The module, connected to the cluster."""
    if address.startswith("ray://"):
        raise SettingsError(
            "ASSAY_RAY_ADDRESS is that of Ray Client, which cannot stream results; make this machine a node "
            "with `ray start --address=HEAD:6379 --num-cpus=0`, and leave the setting out"
        )
    try:
        import ray
    except ImportError:
        raise SettingsError(
            "ASSAY_RUNNER is 'ray' and Ray is not installed; pip install 'assay[ray]', or set it to local"
        ) from None
    try:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise RunnerError(f"there is no Ray cluster at {address}: {error}") from error
    return ray
