"""Decides what to do with a pull request at its present head: test it, wait for approval, or skip it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bot.approval import check_approval, read_role
from bot.campaigns.steps.planning import CONFIG_FILE, NOTHING_TO_TEST
from bot.config import RepositoryConfig, resolve_config
from bot.errors import ConfigError
from bot.pulls.dependencies import GitHubReader, Mirrors
from bot.store.models import Pull
from bot.store.outbox import DRY_RUN

TEST, AWAIT_APPROVAL, SKIP, INVALID_CONFIG = "test", "wait", "leave", "broken"


@dataclass(frozen=True)
class Decision:
    """A decision: TEST, AWAIT_APPROVAL, SKIP or INVALID_CONFIG.

    why            one sentence for people
    config         the configuration in force, for TEST
    base           the commit to compare with, for TEST; "" if there is none
    should_report  whether `reports.mode` of the configuration in force lets GitHub show it
    """

    what: str
    why: str
    config: RepositoryConfig | None = None
    base: str = ""
    should_report: bool = False


class PullPolicy:
    """Decides by the mirrors and, with credentials, by GitHub."""

    def __init__(self, mirrors: Mirrors, github_reader: GitHubReader | None) -> None:
        self._mirrors, self._github_reader = mirrors, github_reader

    def decide(self, pull: Pull) -> Decision:
        """The decision. Raises RefusalError and InfrastructureError as the mirrors and GitHub do."""
        approval = check_approval(pull, pull.head, partial(read_role, self._github_reader, pull.target))
        try:
            config = self._load_config(pull.target, approval.config_commit)
        except ConfigError as error:
            is_own = approval.config_commit == pull.head
            return self._decide_invalid_config(pull, str(error), uses_own_config=is_own)
        if config is None:
            return Decision(SKIP, NOTHING_TO_TEST)
        should_report = _reports_to_github(config)
        if not config.pull_requests.test:
            return Decision(SKIP, f"pull_requests.test is off in {CONFIG_FILE}")
        if pull.draft and not config.pull_requests.drafts:
            return Decision(SKIP, f"it is a draft, and pull_requests.drafts is off in {CONFIG_FILE}")
        if not approval.may_run:
            return Decision(AWAIT_APPROVAL, approval.why, should_report=should_report)
        base = self._mirrors.merge_base(pull.target, pull.base, pull.head)
        return Decision(TEST, approval.why, _apply_pull_budget(config), base, should_report)

    def _decide_invalid_config(self, pull: Pull, error: str, *, uses_own_config: bool) -> Decision:
        """The decision for an invalid configuration; the base branch's decides whether to report it."""
        if not uses_own_config:
            return Decision(INVALID_CONFIG, f"{CONFIG_FILE} on {pull.base_ref} cannot be read: {error}")
        try:
            config = self._load_config(pull.target, pull.base)
        except ConfigError:
            config = None
        return Decision(
            INVALID_CONFIG, error, should_report=config is not None and _reports_to_github(config)
        )

    def _load_config(self, target: str, sha: str) -> RepositoryConfig | None:
        return resolve_config(partial(self._mirrors.read, target, sha))


def _reports_to_github(config: RepositoryConfig) -> bool:
    return config.reports.mode != DRY_RUN


def _apply_pull_budget(config: RepositoryConfig) -> RepositoryConfig:
    """The configuration with the budget of pull requests."""
    budget = config.pull_requests.budget
    return config if budget is None else config.model_copy(update={"budget": budget})
