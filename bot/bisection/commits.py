"""Bisection over the commits of a branch that change what is built. Pure: runs are injected.

A repository that pins a compiler changes the build only in commits that change the pin. Other commits build
the same as the one before and count as one revision with it. Builds are identified by digest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.bisection.decision_rule import Counts
from bot.bisection.search import BisectionResult, ResultKind, bisect
from fuzzing.outcomes import Outcome

#: Classifies one run: "bad" (the bug), "reworded" (the bug, other message), "good" (none), "other".
Classify = Callable[[Outcome], str]
#: Runs the case n times on the build of a commit; None if it cannot be built.
Run = Callable[[str, int], Sequence[Outcome] | None]


@dataclass(frozen=True)
class Revision:
    """A commit that changed the build, with those after it that did not.

    digest   of the build
    label    for people
    """

    commit: str
    digest: str
    label: str


def revisions(commits: Sequence[str], built: Callable[[str], tuple[str, str] | None]) -> list[Revision]:
    """The commits, oldest first, whose build differs from the one before.

    built   commit → (digest, label) of its build; None for a commit that cannot be built, which is left out
    """
    found: list[Revision] = []
    for commit in commits:
        made = built(commit)
        if made is not None and (not found or found[-1].digest != made[0]):
            found.append(Revision(commit, *made))
    return found


class CommitProbe:
    """The probe of `bot.bisection.search` for revisions. Runs of a build count for every revision with it,
    as a pin may be reverted.
    """

    def __init__(self, found: Sequence[Revision], run: Run, classify: Classify) -> None:
        self._found, self._run, self._classify = found, run, classify
        self._known: dict[str, list[Outcome]] = {}
        self._used: dict[int, int] = {}
        self.runs = 0

    def __call__(self, revision: int, runs: int) -> Counts:
        """Further `runs` runs of a revision; no runs if its build cannot be made."""
        one, begun = self._found[revision], self._used.get(revision, 0)
        known = self._known.setdefault(one.digest, [])
        missing = begun + runs - len(known)
        if missing > 0:
            fresh = self._run(one.commit, missing)
            if fresh is None:
                return Counts()
            known += fresh
            self.runs += len(fresh)
        seen = known[begun : begun + runs]
        self._used[revision] = begun + len(seen)
        words = [self._classify(outcome) for outcome in seen]
        reworded = words.count("reworded")
        return Counts(
            words.count("bad") + reworded, words.count("good"), words.count("other"), reworded=reworded
        )


def search(found: Sequence[Revision], run: Run, classify: Classify) -> dict[str, Any]:
    """Bisects two revisions or more, the first clean and the last failing; as JSON.

    Of two revisions it is the second: no run is needed.
    """
    if len(found) == 2:
        return result_to_json(found, BisectionResult(ResultKind.FOUND, 0, 1, (), 0.0, 0.0, {}), 0)
    commit_probe = CommitProbe(found, run, classify)
    return result_to_json(found, bisect(len(found), commit_probe), commit_probe.runs)


def result_to_json(found: Sequence[Revision], answer: BisectionResult, runs: int) -> dict[str, Any]:
    """The result: `commit` is the first bad one, `before` the last good one, `between` skipped ones."""

    def of(at: int | None) -> dict[str, str] | None:
        return None if at is None else {"commit": found[at].commit, "label": found[at].label}

    return {
        "asked": "commits",
        "kind": answer.kind.value,
        "commit": of(answer.failing),
        "before": of(answer.clean),
        "between": [of(at) for at in answer.between],
        "confidence": answer.confidence,
        "rate": answer.rate,
        "revisions": len(found),
        "runs": runs,
        "probed": [
            {
                "commit": found[at].commit,
                "label": found[at].label,
                "judgement": classified.status.value,
                "bad": classified.counts.bad,
                "runs": classified.counts.runs,
            }
            for at, classified in answer.classified.items()
        ],
    }


def describe_result(answer: dict[str, Any]) -> str:
    """The result in one sentence."""
    kind, commit, before = ResultKind(answer["kind"]), answer["commit"], answer["before"]
    if kind is ResultKind.NEVER:
        return f"it does not fail at {_named(before)}: no change between these commits"
    if kind is ResultKind.HORIZON and commit:
        return f"{_named(commit)} fails already, and no earlier commit could be shown to be clean"
    if not (commit and before):
        return "no commit found: it fails too rarely, or the commits between could not be judged"
    hedge = "perhaps " if kind is ResultKind.UNRELIABLE else ""
    many = answer["revisions"] - 1
    tried = f"{many} commits between change what is built" if many > 1 else "no other changes what is built"
    if answer["between"]:
        left = len(answer["between"])
        others = "the one" if left == 1 else f"one of the {left}"
        return (
            f"{hedge}brought by {_named(commit)} or {others} before it that could not be judged; "
            f"{_named(before)} does not fail; {tried}"
        )
    return f"{hedge}brought by {_named(commit)}; {_named(before)} does not fail; {tried}"


def _named(one: dict[str, str]) -> str:
    return f"commit {one['commit'][:12]} ({one['label']})"
