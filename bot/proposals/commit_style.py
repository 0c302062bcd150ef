"""How a repository writes its commits: the form of their subjects, and whether it asks for a sign-off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from bot.commit_files import Ancestor, CommitMessage
from bot.proposals.tree import Tree

#: Commits whose subjects are read: enough for a majority, few enough to read one by one.
RECENT = 40
#: Fewest subjects that show a convention.
_FEWEST = 5
_BRACKETS = re.compile(r"(?:\[[^\]]{1,40}\]\s*)+(?=\S)")
_BRACKET = re.compile(r"\[([^\]]+)\]")
_PREFIX = re.compile(r"(?P<area>[A-Za-z][\w./-]{0,30})(?:\((?P<scope>[^)]{1,30})\))?!?: (?=\S)")
#: Types of Conventional Commits (conventionalcommits.org, 1.0.0, after the Angular convention).
_TYPES = frozenset({"build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "style", "test"})
#: Words for tests in tags and areas.
_TEST_WORDS = frozenset({"test", "tests", "testing", "unittest"})
#: Files that ask for a Developer Certificate of Origin: of GitHub's DCO app, and where contributors are told.
_DCO_FILES = (".github/dco.yml",)
_GUIDES = ("CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md", "CONTRIBUTING.rst")
_ASKS = re.compile(
    r"signed-off-by|developer certificate of origin|git commit (?:-s|--signoff)\b", re.IGNORECASE
)


@runtime_checkable
class History(Protocol):
    """Subjects of commits (`bot.github.repositories.Repositories`)."""

    def history(self, target: str, sha: str, limit: int, /) -> Sequence[Ancestor]:
        """A commit and those that lead to it, newest first."""
        ...

    def message(self, target: str, sha: str, /) -> CommitMessage:
        """Author and subject of a commit."""
        ...


def recent_subjects(repositories: object, target: str, commit: str) -> tuple[str, ...]:
    """The subjects of the last commits, newest first; none without a history."""
    if not isinstance(repositories, History):
        return ()
    last = repositories.history(target, commit, RECENT)
    return tuple(repositories.message(target, one.sha).subject for one in last)


def styled_subject(subject: str, recent: Sequence[str], library: str = "") -> str:
    """The subject in the form that most of the recent subjects have.

    `[Tag] Subject`, `area: subject` and `type(scope): subject` are known, and a small first letter. The tag
    or area is one that the repository itself uses, for tests or else for the `library` of the program.
    """
    written = [one for one in recent if not one.startswith(("Merge ", "Revert "))]
    if len(written) < _FEWEST:
        return subject
    if _most(written, _BRACKETS):
        heads = [found[0] for one in written if (found := _BRACKETS.match(one))]
        tags = [tag for head in heads for tag in _BRACKET.findall(head)]
        return f"[{_choice(tags, library) or 'Test'}] {_cased(subject, written, _BRACKETS)}"
    if _most(written, _PREFIX):
        areas = [found["area"] for one in written if (found := _PREFIX.match(one))]
        conventional = sum(area in _TYPES for area in areas) * 2 > len(areas)
        area = "test" if conventional else _choice(areas, library) or "tests"
        return f"{area}: {_cased(subject, written, _PREFIX)}"
    return _cased(subject, written, re.compile(""))


def asks_for_sign_off(tree: Tree) -> bool:
    """Whether the repository asks for `Signed-off-by` (developercertificate.org)."""
    if any(tree.has(path) for path in _DCO_FILES):
        return True
    return any(_ASKS.search(tree.read(path) or "") for path in _GUIDES)


def signed_off(subject: str, signer: str) -> str:
    """The message of a commit with this subject; "" for no signer."""
    return f"{subject}\n\nSigned-off-by: {signer}" if signer else subject


def _most(subjects: Sequence[str], form: re.Pattern[str]) -> bool:
    return sum(form.match(one) is not None for one in subjects) * 2 > len(subjects)


def _choice(words: Sequence[str], library: str) -> str:
    """The most frequent word for tests, else for the library, "" if there is none."""
    for wanted in (_TEST_WORDS, frozenset({library} if library else ())):
        found = Counter(one for one in words if set(re.split(r"\W+", one.lower())) & wanted)
        if found:
            return found.most_common(1)[0][0]
    return ""


def _cased(subject: str, recent: Sequence[str], form: re.Pattern[str]) -> str:
    """The subject with a small first letter where most subjects have one after their prefix."""
    starts = [one[found.end() : found.end() + 1] for one in recent if (found := form.match(one))]
    if sum(start.islower() for start in starts) * 2 > len(starts):
        return subject[:1].lower() + subject[1:]
    return subject
