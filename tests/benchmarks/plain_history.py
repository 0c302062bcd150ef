"""Which consecutive commits of a compiler's own repository are accused; each must be looked into by hand.

The whole service runs beside a double of GitHub whose repository has the real history up to a commit. The
next commits are pushed one by one, each with its webhook, once nothing is left to do about the one before;
`--count` of them change the compiler's Python sources. Printed for each: seconds from the webhook to the end,
processor time, verdicts, memory of the service, size of its database, the conclusion and title of the check
run, the regressions, and whatever else was posted. `--repository` is a clone; cases and toolchains are kept
in `--data` between calls, the database is not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bot.config.layouts import layouts
from tests.benchmarks._common import machine
from tests.benchmarks._pushed_history import PushedHistory, PushResult, RealCommit, list_commits
from tests.scenarios.deployment import Deployment

_CONFIG = """\
version: 1
backend: {compiler}
frontend: {frontend}
budget: {budget}
toolchain:
  provisioner: [overlay, release]
reports:
  mode: auto
"""
#: Folders of a data folder that are kept between calls.
_KEPT = ("corpus", "toolchains")


def main(argv: Sequence[str]) -> int:
    """Prints some lines for each commit, and the counts; 1 if a commit is accused."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks plain-history", description=__doc__)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="cases and toolchains, kept between calls")
    parser.add_argument("--compiler", default="tinygrad")
    parser.add_argument("--frontend", default="onnx")
    parser.add_argument("--path", action="append", help="commits that change this path [default: all laid]")
    parser.add_argument("--until", default="HEAD")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--budget", default="60s", help="of each push")
    parser.add_argument("--minutes", type=float, default=60.0, help="no further commit is pushed after this")
    options = parser.parse_args(argv)
    (layout,) = [one for one in layouts() if one.backend == options.compiler]
    commits = list_commits(
        options.repository, options.path or list(layout.paths), options.until, options.count
    )
    print(
        f"{machine()}; {len(commits)} commits, {sum(one.touches for one in commits)} of them touch",
        flush=True,
    )
    config = _CONFIG.format(compiler=options.compiler, frontend=options.frontend, budget=options.budget)
    begun, results = time.monotonic(), list[tuple[RealCommit, PushResult]]()
    with pushed_history(options.repository, options.data, config, layout.tag) as history:
        history.begin(f"{commits[0].sha}^")
        for commit in commits:
            if time.monotonic() - begun > options.minutes * 60:
                print(
                    f"stopped: {options.minutes:g} minutes are over; {len(commits) - len(results)} not pushed"
                )
                break
            results.append((commit, history.push(commit.sha)))
            print(describe(*results[-1]), flush=True)
        for error in history.deployment.internal_errors():
            print(f"OUR OWN ERROR: {error}")
    print(summarize(results))
    return 1 if any(result.named for _, result in results) else 0


@contextmanager
def pushed_history(repository: Path, data: Path, config: str, tags: str) -> Iterator[PushedHistory]:
    """The service, with the cases and toolchains of `data`, and its repository, which is empty."""
    with tempfile.TemporaryDirectory() as folder:
        service = Path(folder) / "service"
        for name in _KEPT:
            (data / name).mkdir(parents=True, exist_ok=True)
            (service / "data").mkdir(parents=True, exist_ok=True)
            (service / "data" / name).symlink_to((data / name).absolute())
        with Deployment(service, real_compiler=True, hurried=False) as deployment:
            double = deployment.hub.repository("octo/compiler")
            yield PushedHistory(deployment, double, repository, config, tags)


def describe(commit: RealCommit, result: PushResult) -> str:
    """A push in some lines."""
    mark = " " if commit.touches else "-"
    lines = [
        f"{commit.sha[:10]} {mark} {result.seconds:4.0f} s, {result.processor:4.0f} s of processor, "
        f"{result.cases} cases ({result.new[0]} new, {result.new[1]} at base), "
        f"{result.memory >> 20} MiB, database {result.database >> 10} KiB  {commit.subject[:60]}",
        f"    {result.said or 'no check run'}",
    ]
    if result.found:
        lines.append(f"    {', '.join(f'{count} {kind}' for kind, count in result.found.items())}")
    lines += [f"    ended: {result.reason}"] if result.reason else []
    lines += [f"    ACCUSED: {case}: {title}" for case, title in result.named]
    lines += [f"    posted: {post}" for post in result.posts]
    return "\n".join(lines)


def summarize(results: Sequence[tuple[RealCommit, PushResult]]) -> str:
    """The counts of all pushes."""
    touching = [result for commit, result in results if commit.touches]
    tested = [one for one in touching if one.cases]
    failed = sum(bool(one.reason) for one in touching)
    posts = sum(len(one.posts) for _, one in results)
    return (
        f"{len(results)} pushes, {len(touching)} that touch the paths: {len(tested)} ran "
        f"{sum(one.cases for one in tested)} cases, {failed} failed, "
        f"{sum(bool(one.named) for one in touching)} accused, {posts} other posts"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
