"""Searches the commit with a change by the provisioners of a configuration, one kind after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from bot import toolchains
from bot.bisection.build_search import BuildStage
from bot.bisection.commit_plan import CommitQuestion, Provision, Resolve, Stage
from bot.bisection.commit_range import CommitRange, History, files_of
from bot.bisection.index_search import IndexStage
from bot.bisection.overlay_search import OverlayStage
from bot.bisection.report import is_doubtful
from bot.bisection.search import ResultKind
from bot.config import RepositoryConfig
from bot.config.layouts import recognize
from bot.errors import ConfigError, ProvisionError

#: Stages of their own; neighbors of all other provisioners are one, which takes the first that can make a
#: commit.
_ALONE = ("overlay", "index")
#: What an answer is worth, beside one that names two commits.
_WORTH = {ResultKind.FOUND: 4, ResultKind.RANGE: 3, ResultKind.UNRELIABLE: 2, ResultKind.ERROR: 0}


def list_stages(
    repository: History,
    between: CommitRange,
    config: RepositoryConfig,
    data_dir: Path,
    resolve: Resolve = toolchains.resolve,
    provision: Provision = toolchains.provision,
) -> list[Stage]:
    """The stages of a configuration's provisioners, in order.

    Commits between two wheels of an index are searched by `overlay` if nothing follows `index` and the
    repository is a known compiler's.
    """
    names = list(config.toolchain.provisioner)
    if names[-1] == "index" and "overlay" not in names:
        read = files_of(repository, between.bad)
        layout = recognize(lambda path: read(path) is not None)
        names += ["overlay"] if layout is not None and layout.backend == config.backend else []
    stages: list[Stage] = []
    for alone, listed in groupby(names, key=lambda name: name if name in _ALONE else ""):
        if alone == "overlay":
            stages.append(OverlayStage(repository, config, data_dir, resolve, provision))
        elif alone == "index":
            stages.append(IndexStage(repository, config, data_dir, resolve))
        else:
            stages.append(BuildStage(repository, config, data_dir, resolve, tuple(listed)))
    return stages


def search_commits(stages: Iterable[Stage], between: CommitRange, question: CommitQuestion) -> dict[str, Any]:
    """The answer of the first stage that names one commit; else the best.

    Commits between the two that one stage names are searched by the next. What a stage cannot make is left to
    the next. `earlier` of the answer holds the answers of the stages before, `passed_over` why others gave
    none. Raises what the last stage raises, if no other gave an answer.
    """
    best: dict[str, Any] | None = None
    earlier: list[dict[str, Any]] = []
    passed_over: list[str] = []
    failure: ConfigError | ProvisionError | None = None
    part = between
    for stage in stages:
        try:
            answer = stage.search(part, question)
        except (ConfigError, ProvisionError) as error:
            if isinstance(error, ProvisionError) and error.transient:
                raise
            failure = error
            passed_over.append(f"{stage.name}: {error}")
            question.progress(f"{stage.name} cannot be searched by: {error}")
            continue
        answer["stage"] = stage.name
        if best is None or _worth(answer) >= _worth(best):
            best = answer
        earlier.append(answer)
        if _is_final(answer):
            break
        if answer["kind"] == ResultKind.RANGE.value and not is_doubtful(answer):
            part = CommitRange(answer["before"], answer["release"])
    if best is None:
        assert failure is not None
        raise failure
    if part != between:
        best["range"] = str(between)
    return best | {"earlier": [one for one in earlier if one is not best], "passed_over": passed_over}


def _is_final(answer: Mapping[str, Any]) -> bool:
    """Whether a further stage would not tell more: one commit is named, or the time is over."""
    found = answer["kind"] == ResultKind.FOUND.value and not is_doubtful(answer)
    return found or bool(answer.get("untried"))


def _worth(answer: Mapping[str, Any]) -> int:
    return _WORTH.get(ResultKind(answer["kind"]), 1)
