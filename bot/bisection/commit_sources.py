"""How the commits of a range become toolchains of `overlay`: their sources over one wheel, or over two.

Commits whose compiler sources are equal to those of the commit before are left out: nothing can tell them
apart. All are laid over the wheel of the last commit, so that two of them differ in nothing else. Older
commits with which that wheel does not work are laid over a wheel of their time, if the others do not show
the change: to find which commits work takes more toolchains than to search them. Which do is first read in
their sources (`needed_names`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import floor, log2
from pathlib import Path

from bot import toolchains
from bot.bisection.commit_plan import Provision, Resolve
from bot.bisection.commit_range import CommitRange, History, files_of
from bot.bisection.commits import revisions
from bot.config import RepositoryConfig
from bot.errors import BrokenSourcesError, CheckUnfinishedError, ConfigError
from bot.toolchains import ToolchainSpec
from bot.toolchains.overlay import find_layout
from bot.toolchains.registry import OnProgress
from bot.toolchains.unreachable_sources import needed_names

#: As `bot.toolchains.unreachable_sources.needed_names`.
Needs = Callable[[ToolchainSpec], frozenset[str]]


@dataclass(frozen=True)
class Reach:
    """The commits that can be tested, oldest first.

    before   those before the first that works
    older    those over an older wheel
    between  those between the two wheels, with which neither works
    newer    those over the wheel of the last commit
    """

    before: tuple[str, ...]
    older: tuple[str, ...]
    between: tuple[str, ...]
    newer: tuple[str, ...]

    @property
    def usable(self) -> tuple[str, ...]:
        """All that can be tested."""
        return self.older + self.newer


@dataclass(frozen=True)
class Sources:
    """How the commits of a repository become toolchains: as `like`, or as `older` is made.

    data_dir  where digests of sources are cached
    complete  whether both ends of the range work
    older     the same folders over the wheel of older commits, with which `like` does not work
    """

    repository: History
    config: RepositoryConfig
    data_dir: Path
    like: ToolchainSpec
    complete: bool = False
    older: ToolchainSpec | None = None
    resolve: Resolve = toolchains.resolve
    provision: Provision = toolchains.provision
    needs: Needs = needed_names

    def spec(self, sha: str, *, older: bool = False) -> ToolchainSpec:
        """The toolchain of a commit."""
        like = self.older if older and self.older else self.like
        made = self.resolve(self._over_wheel_of(like), files_of(self.repository, sha), self.data_dir)
        return replace(made.like(like), otherwise=None, label=f"{like.label}, {sha[:12]}")

    def _over_wheel_of(self, like: ToolchainSpec) -> RepositoryConfig:
        """The configuration with that wheel: those of other releases may be nearer to a commit."""
        chosen = self.config.toolchain.model_copy(update={"wheel": _wheel(like)})
        return self.config.model_copy(update={"toolchain": chosen})

    def revisions(self, between: CommitRange) -> list[str]:
        """The first commit, and those after it that change the compiler's sources; oldest first."""
        paths = [one.path for one in self.like.overlay]
        shas = (between.good, *self.repository.commits("", between.good, between.bad, paths))

        def trees(sha: str) -> tuple[str, str]:
            return "".join(self.repository.tree("", sha, path) for path in paths), sha

        return [one.commit for one in revisions(shas, trees)]

    def reach(self, shas: Sequence[str], progress: OnProgress, *, presumed: bool = False) -> Reach:
        """Which commits work over which wheel; the last one works.

        Where commits work again and again not, the search skips them.

        presumed  whether commits that need names of missing sources are left out untried, which is enough if
                  the change lies among the others
        """
        guess = self.presumed(shas)
        begin = _first(shas, lambda sha: self.works(sha, progress), guess, presumed=presumed)
        rest, newer = tuple(shas[:begin]), tuple(shas[begin:])
        window = _window(rest, lambda sha: self.works(sha, progress, older=True)) if self.older else None
        if window is None:
            return Reach(rest, (), (), newer)
        first, end = window
        return Reach(rest[:first], rest[first:end], rest[end:], newer)

    def fits(self, sha: str, working: str) -> bool:
        """Whether a commit needs no name of missing sources but those that a working one needs, too."""
        return self.needs(self.spec(sha)) <= self.needs(self.spec(working))

    def presumed(self, shas: Sequence[str]) -> int:
        """The place of the first commit that most likely works, as it needs no name that the last one does
        not need.
        """
        return bisect_left(shas, True, hi=len(shas) - 1, key=lambda sha: self.fits(sha, shas[-1]))

    def works(self, sha: str, progress: OnProgress, *, older: bool = False) -> bool:
        """Whether a commit passes the smoke test."""
        try:
            self.provision(self.spec(sha, older=older), self.data_dir, progress)
        except (BrokenSourcesError, CheckUnfinishedError) as error:
            progress(f"{str(error).splitlines()[0]}: trying another")
            return False
        return True

    def out_of_reach(self, between: CommitRange) -> int:
        """How many commits change code of the compiler that the sources do not carry."""
        laid = {one.path for one in self.like.overlay}
        native = [path.rstrip("/") for path in self.like.unreachable if path not in laid]
        return len(self.repository.commits("", between.good, between.bad, native)) if native else 0


def list_sources(
    repository: History,
    between: CommitRange,
    config: RepositoryConfig,
    data_dir: Path,
    progress: OnProgress,
    resolve: Resolve = toolchains.resolve,
    provision: Provision = toolchains.provision,
    needs: Needs = needed_names,
) -> Iterator[Sources]:
    """The folders and wheels with which the bad end of a range works, as they are found: the nearest wheel
    first, of its folders those that most likely work with most commits; and of other wheels only one with
    which both ends work, which is the last.

    Raises ConfigError if the repository is another compiler's, ProvisionError if no wheel works.
    """
    bad = files_of(repository, between.bad)
    layout = find_layout(bad)
    if layout.backend != config.backend:
        raise ConfigError(f"this is a repository of {layout.backend}: use --backend {layout.backend}")
    wanted = config.toolchain.model_copy(update={"provisioner": ["overlay"]})
    config = config.model_copy(update={"toolchain": wanted})
    candidates = resolve(config, bad, data_dir).candidates()
    found = [
        Sources(repository, config, data_dir, one, False, None, resolve, provision, needs)
        for one in candidates
    ]
    working = set()
    for _, of_wheel in groupby(found, key=lambda one: _wheel(one.like)):
        for sources in _likeliest_first(of_wheel, between):
            if not sources.works(between.bad, progress):
                continue
            if sources.fits(between.good, between.bad) and sources.works(between.good, progress):
                yield replace(sources, complete=True)
                return
            if _folders(sources.like) not in working:
                working.add(_folders(sources.like))
                yield sources
    if not working:
        raise BrokenSourcesError(f"the sources of {between.bad[:12]} work with no wheel; see above")


def _likeliest_first(found: Iterable[Sources], between: CommitRange) -> list[Sources]:
    """Sources over one wheel, the widest folders first, unless twice as many commits most likely work with
    less: to search twice as many takes one more toolchain.
    """
    listed = list(found)

    def doublings(sources: Sources) -> int:
        shas = sources.revisions(between)
        return floor(log2(len(shas) / (len(shas) - sources.presumed(shas))))

    return sorted(listed, key=doublings) if len(listed) > 1 else listed


def over_two_wheels(found: Sequence[Sources], between: CommitRange, progress: OnProgress) -> Sources:
    """Of what was found that with which most of the differing commits can be tested, older ones over a wheel
    of their time.
    """
    choices = [replace(one, older=_older(one, between.good)) for one in found]
    return choices[0] if len(choices) == 1 else max(choices, key=lambda one: _share(one, between, progress))


def _older(sources: Sources, good: str) -> ToolchainSpec | None:
    """The same folders over another wheel, the nearest to the good end; None if there is none."""
    commit = files_of(sources.repository, good)
    for candidate in sources.resolve(sources.config, commit, sources.data_dir).candidates():
        if _folders(candidate) == _folders(sources.like) and _wheel(candidate) != _wheel(sources.like):
            return candidate
    return None


def _share(sources: Sources, between: CommitRange, progress: OnProgress) -> float:
    """The share of the differing commits that can be tested."""
    differing = sources.revisions(between)
    return len(sources.reach(differing, progress).usable) / len(differing)


def _folders(spec: ToolchainSpec) -> tuple[str, ...]:
    return tuple(one.path for one in spec.overlay)


def _wheel(like: ToolchainSpec) -> str | None:
    return like.requirements[0].partition("==")[2] if like.overlay else None


def _first(
    shas: Sequence[str], works: Callable[[str], bool], guess: int = 0, *, presumed: bool = False
) -> int:
    """The place of the first commit that works; the last one does. Tries the one at `guess` and the one
    before, then the middle.

    presumed  whether those before `guess` are known not to work if it does
    """
    low, high = -1, len(shas) - 1
    if guess > 0 and (guess == high or works(shas[guess])):
        if presumed or not works(shas[guess - 1]):
            return guess
        high = guess - 1
    elif guess > 0:
        low = guess
    middle = 0 if low < 0 else (low + high) // 2
    while high - low > 1:
        low, high = (low, middle) if works(shas[middle]) else (middle, high)
        middle = (low + high) // 2
    return high


def _window(shas: Sequence[str], works: Callable[[str], bool]) -> tuple[int, int] | None:
    """The first of neighboring commits that work, and the place behind the last; None if none was found."""
    known = next((place for place in _spread(len(shas)) if works(shas[place])), None)
    if known is None:
        return None
    first = _first(shas[: known + 1], works)
    return first, len(shas) - _first(shas[known:][::-1], works)


def _spread(count: int) -> list[int]:
    """Few places of so many, the first one first, the others far from each other."""
    fractions = (0, 1 / 2, 1 / 4, 3 / 4, 1 / 8, 5 / 8, 3 / 8, 7 / 8)
    return list(dict.fromkeys(int(count * one) for one in fractions)) if count else []
