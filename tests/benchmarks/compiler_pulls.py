"""What pull requests of a compiler's own repository cost, from the webhook to the verdict.

The whole service runs beside a double of GitHub whose repository is made of the installed TVM's Python
sources. One pull request breaks a converter, a second one of the same base breaks it otherwise, a third only
formats it, and a fourth changes its code to the same effect. Printed for each: the seconds from the webhook
to the first finding in the check run and to the end, the findings, and the verdicts that were new at head and
at base; with --text what the check run says in the end. The wheel is installed before. The service waits as
in production.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import func, select

from bot import toolchains
from bot.config import CONFIG_PATH, resolve_config
from bot.store import findings
from bot.store.models import Classification, OutcomeRow
from tests.benchmarks._common import machine, verdict
from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment
from tests.scenarios.test_compiler_commits import CONFIG, FRONTEND, edited, sources

FIRST_S, END_S = 60.0, 360.0
BAR = (
    f"a first finding after {FIRST_S:g} s and the end after {END_S:g} s, no base runs for the second, "
    "no finding for the third and the fourth"
)
_CONVERTER = "relax_op = relax.op.subtract"
_FINDING = re.compile(r"\d+ (regressions? so far|new bugs?)")
_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Cost:
    """What one pull request cost.

    first        seconds to the first finding in the check run, None if there was none
    seconds      to the end
    regressions  findings
    verdicts     new ones, of both sides
    base         of those, at base
    """

    first: float | None
    seconds: float
    regressions: int
    verdicts: int
    base: int


def main(argv: Sequence[str]) -> int:
    """Prints a line for each pull request; 1 if the bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks compiler-pulls", description=__doc__)
    parser.add_argument("--budget", default="5m", help="of each campaign")
    parser.add_argument("--pull", action="append", help="only this one: formatted, plain, broken, …")
    parser.add_argument("--text", action="store_true", help="print what the check run says")
    parser.add_argument("--corpus", type=Path, help="of another data folder, collected before")
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    text = sources()[FRONTEND]
    assert text is not None
    changes: dict[str, dict[str, str | None]] = {
        "formatted": {FRONTEND: f"# A comment.\n{text}\n\n"},
        "plain": edited(text, _CONVERTER, 'relax_op = getattr(relax.op, "sub" + "tract")'),
        "broken": edited(text, _CONVERTER, "relax_op = relax.op.add"),
        "broken otherwise": edited(text, _CONVERTER, "relax_op = relax.op.multiply"),
    }
    config = CONFIG.replace("budget: 10m", f"budget: {options.budget}")
    costs = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Deployment(
            Path(folder) / "service",
            real_compiler=True,
            hurried=False,
            ASSAY_WORKERS=str(len(os.sched_getaffinity(0))),
        ) as deployment,
    ):
        _install_wheel(deployment.data_dir)
        if options.corpus:
            shutil.copytree(options.corpus, deployment.data_dir / "corpus", dirs_exist_ok=True)
        repository = deployment.hub.repository("octo/tvm")
        repository.commit({".github/assay.yml": config, **sources()}, message="Begin", quiet=True)
        for name, files in changes.items():
            if name in (options.pull or changes):
                costs[name] = _measure(deployment, repository, name.replace(" ", "-"), files)
                print(f"{name}: {costs[name]}", flush=True)
                if options.text:
                    _print_text(repository, name.replace(" ", "-"))
    return 0 if options.pull else verdict(_is_kept(costs), BAR)


def _print_text(repository: RepositoryDouble, branch: str) -> None:
    for run in repository.check_runs:
        if run.head_sha == repository.head(branch):
            output = run.fields["output"]
            print(
                *(output.get(part) or "" for part in ("title", "summary", "text")), sep="\n---\n", flush=True
            )


def _is_kept(costs: Mapping[str, Cost]) -> bool:
    broken, again = costs["broken"], costs["broken otherwise"]
    in_time = all((one.first or _TIMEOUT_S) <= FIRST_S and one.seconds <= END_S for one in (broken, again))
    return in_time and not again.base and not any(costs[name].regressions for name in ("formatted", "plain"))


def _measure(
    deployment: Deployment, repository: RepositoryDouble, branch: str, files: dict[str, str | None]
) -> Cost:
    before = _verdicts(deployment)
    begun = time.monotonic()
    repository.open_pull(files, branch=branch)
    head = repository.head(branch)
    first, seconds = _follow(repository, head, begun)
    (campaign,) = [one for one in deployment.campaigns(repository.name) if one.head == head and one.pull]
    with deployment.rows.reading() as session:
        found = list(findings.of_campaign(session, campaign.id))
    after = _verdicts(deployment)
    new = {toolchain: after[toolchain] - before.get(toolchain, 0) for toolchain in after}
    regressions = sum(one.classification == Classification.REGRESSION.value for one in found)
    return Cost(first, seconds, regressions, sum(new.values()), new.get(campaign.base_toolchain or "", 0))


def _follow(repository: RepositoryDouble, head: str, begun: float) -> tuple[float | None, float]:
    """Seconds until the check run shows a finding, None if it never does, and until it is completed."""
    first = None
    while time.monotonic() - begun < _TIMEOUT_S:
        for run in repository.check_runs:
            if run.head_sha != head:
                continue
            seconds = time.monotonic() - begun
            if first is None and _FINDING.search(str(run.fields.get("output", ""))):
                first = seconds
                print(f"  {seconds:.0f} s: {run.fields['output']['title']}", flush=True)
            if run.fields.get("status") == "completed":
                print(f"  {seconds:.0f} s: {run.fields['output']['title']}", flush=True)
                return first, seconds
        time.sleep(0.1)
    raise AssertionError(f"the check run of {head[:12]} was not completed in {_TIMEOUT_S:g} s")


def _install_wheel(data_dir: Path) -> None:
    """Makes the toolchain that the commits are laid over."""
    pins = {"requirements.txt": f"apache-tvm=={version('apache-tvm')}\n".encode()}
    read = (pins | {CONFIG_PATH: b"version: 1\nbackend: tvm\n"}).get
    config = resolve_config(read)
    assert config is not None
    toolchains.provision(toolchains.resolve(config, read, data_dir), data_dir, lambda _note: None)


def _verdicts(deployment: Deployment) -> dict[str, int]:
    """Verdicts by toolchain."""
    with deployment.rows.reading() as session:
        rows = session.execute(select(OutcomeRow.toolchain, func.count()).group_by(OutcomeRow.toolchain))
        return {toolchain: int(count) for toolchain, count in rows}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
