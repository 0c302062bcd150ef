"""Enumerations of row states: deliveries, campaigns, findings, bugs, effects and others."""

from __future__ import annotations

from enum import Enum


class DeliveryState(str, Enum):
    """State of a delivery."""

    PENDING = "pending"
    DONE = "done"
    IGNORED = "ignored"
    FAILED = "failed"


class CampaignState(str, Enum):
    """The current step of a campaign; a step is repeated from its rows if its process dies."""

    PLANNING = "planning"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    CONFIRMING = "confirming"
    COMPARING = "comparing"
    REDUCING = "reducing"
    REPORTING = "reporting"
    DONE = "done"
    FAILED = "failed"
    SUPERSEDED = "superseded"

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self in (CampaignState.DONE, CampaignState.FAILED, CampaignState.SUPERSEDED)


class Side(str, Enum):
    """One of a campaign's two commits."""

    HEAD = "head"
    BASE = "base"


class Classification(str, Enum):
    """A finding's meaning when head is compared with base."""

    REGRESSION = "regression"  # fails at head, passes at base
    CHANGED = "changed"  # other evidence than at base, but no regression; never filed
    ALREADY_BROKEN = "already_broken"  # fails at both
    SUPPORT_LOST = "support_lost"  # unsupported at head, passes at base
    FIXED = "fixed"  # failed at base, passes at head
    FLAKY = "flaky"  # did not repeat in fresh processes; the reference is deterministic
    FLAKY_PROGRAM = "flaky_program"  # did not repeat; the library itself is nondeterministic
    INFRASTRUCTURE = (
        "infrastructure"  # an infrastructure failure: dropped, and run again by the next campaign
    )
    INCONCLUSIVE = "inconclusive"  # base unknown


class BugState(str, Enum):
    """State of a bug (`bot.store.bug_states`)."""

    NEW = "new"
    HELD = "held"
    REPORTED = "reported"
    FIXED = "fixed"  # its case passes on one commit
    VERIFIED = "verified"  # it passed three times on two commits
    CLOSED = "closed"  # the bug's reason and audit record why


class TargetState(str, Enum):
    """Whether a repository is watched, or why not."""

    WATCHED = "watched"
    SUSPENDED = "suspended"  # its owner suspended the App
    REMOVED = "removed"  # uninstalled; its data is deleted after the retention time
    ARCHIVED = "archived"  # read-only: not tested, no effects
    GONE = "gone"  # deleted or hidden on GitHub


class CommandState(str, Enum):
    """State of a command."""

    PENDING = "pending"
    DONE = "done"
    REFUSED = "refused"  # no permission, wrong place, no such command
    FAILED = "failed"


class JobState(str, Enum):
    """State of a job."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class ProposalState(str, Enum):
    """State of a proposed test (`bot.store.proposals`)."""

    OPEN = "open"  # also while its pull request waits to be opened
    MERGED = "merged"
    REFUSED = "refused"  # a person closed it
    FAILED = "failed"  # GitHub refused to open it


class EffectState(str, Enum):
    """State of an effect."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    HELD = "held"
    FAILED = "failed"


class SuppressionCause(str, Enum):
    """Why an effect is not sent, if that decides what reactivates it (`bot.store.suppression`)."""

    NONE = ""  # the reason is for people; only a person reactivates it
    WITHDRAWN = "withdrawn"  # an issue that is no longer true
    OVER_QUOTA = "over_quota"  # an issue that waits for the next day
    CHECKING = "checking"  # an issue that waits for its last check
    UNWATCHED = "unwatched"  # its repository is not watched or not accessible
    NO_ISSUES = "no_issues"  # issues are disabled in its repository
