"""What is to be done about a pull request at its present head: test it, wait for a release, or leave it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bot.campaigns.steps.planning import CONFIG_FILE, NOTHING_TO_TEST
from bot.config import RepositoryConfig, config_of
from bot.errors import ConfigError
from bot.pulls.forge import Forge, Mirrors
from bot.pulls.trust import trust_in
from bot.store.models import Pull
from bot.store.outbox import REHEARSAL

TEST, WAIT, LEAVE, BROKEN = "test", "wait", "leave", "broken"


@dataclass(frozen=True)
class Decision:
    """One of TEST, WAIT (for a release), LEAVE, and BROKEN (its own configuration cannot be read).

    why      one sentence for people
    config   the configuration in force, for TEST
    base     the commit to compare with, for TEST; "" where there is none
    audible  whether GitHub is told, as `reports.mode` of the configuration in force says
    """

    what: str
    why: str
    config: RepositoryConfig | None = None
    base: str = ""
    audible: bool = False


class Decider:
    """Decides with what git and, where it can be asked, GitHub say."""

    def __init__(self, mirrors: Mirrors, forge: Forge | None) -> None:
        self._mirrors, self._forge = mirrors, forge

    def decide(self, pull: Pull) -> Decision:
        """Decides. Raises RefusalError and InfrastructureError as the mirrors and GitHub do."""
        trust = trust_in(pull, self._permission(pull.target))
        try:
            config = self._configuration(pull.target, pull.head if trust.own else pull.base)
        except ConfigError as error:
            return self._broken(pull, str(error), own=trust.own)
        if config is None:
            return Decision(LEAVE, NOTHING_TO_TEST)
        audible = _audible(config)
        if not config.pull_requests.test:
            return Decision(LEAVE, f"pull_requests.test is off in {CONFIG_FILE}")
        if pull.draft and not config.pull_requests.drafts:
            return Decision(LEAVE, f"it is a draft, and pull_requests.drafts is off in {CONFIG_FILE}")
        if not trust.runs:
            return Decision(WAIT, trust.why, audible=audible)
        base = self._mirrors.merge_base(pull.target, pull.base, pull.head)
        return Decision(TEST, trust.why, _for_pulls(config), base, audible)

    def _broken(self, pull: Pull, error: str, *, own: bool) -> Decision:
        """A configuration that cannot be read; whether to say so is asked of the branch it is merged into."""
        if not own:
            return Decision(BROKEN, f"{CONFIG_FILE} on {pull.base_ref} cannot be read: {error}")
        try:
            config = self._configuration(pull.target, pull.base)
        except ConfigError:
            config = None
        return Decision(BROKEN, error, audible=config is not None and _audible(config))

    def _configuration(self, target: str, sha: str) -> RepositoryConfig | None:
        return config_of(partial(self._mirrors.read, target, sha))

    def _permission(self, target: str) -> partial[str]:
        return partial(self._ask, target)

    def _ask(self, target: str, login: str) -> str:
        return self._forge.permission(target, login) if self._forge is not None else "none"


def _audible(config: RepositoryConfig) -> bool:
    return config.reports.mode != REHEARSAL


def _for_pulls(config: RepositoryConfig) -> RepositoryConfig:
    """The configuration as it holds for a pull request's campaign."""
    budget = config.pull_requests.budget
    return config if budget is None else config.model_copy(update={"budget": budget})
