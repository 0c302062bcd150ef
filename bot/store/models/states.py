"""What rows may be in: the states of deliveries, campaigns, findings, bugs, effects and the rest."""

from __future__ import annotations

from enum import Enum


class DeliveryState(str, Enum):
    """What became of a delivery."""

    PENDING = "pending"
    DONE = "done"
    IGNORED = "ignored"
    FAILED = "failed"


class CampaignState(str, Enum):
    """The step a campaign is at; each is done again from its rows if a process dies in it."""

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
        """Whether nothing more happens in this state."""
        return self in (CampaignState.DONE, CampaignState.FAILED, CampaignState.SUPERSEDED)


class Side(str, Enum):
    """Which of a campaign's two commits."""

    HEAD = "head"
    BASE = "base"


class Classification(str, Enum):
    """What a finding means when head is compared with base."""

    REGRESSION = "regression"  # fails at head, passes at base
    ALREADY_BROKEN = "already_broken"  # fails at both
    SUPPORT_LOST = "support_lost"  # refused as unsupported at head, passes at base
    FIXED = "fixed"  # failed at base, passes at head
    FLAKY = "flaky"  # did not repeat in fresh processes, while the reference is deterministic
    FLAKY_PROGRAM = "flaky_program"  # did not repeat, and the library itself is nondeterministic
    INFRASTRUCTURE = (
        "infrastructure"  # an infrastructure failure: dropped, and run again by the next campaign
    )
    INCONCLUSIVE = "inconclusive"  # base unknown


class BugState(str, Enum):
    """How far a bug has come."""

    NEW = "new"
    HELD = "held"
    REPORTED = "reported"
    FIXED = "fixed"  # its reproducers pass on one commit
    VERIFIED = "verified"  # they passed three times on two commits
    CLOSED = "closed"  # why is in the bug's reason and in its audit


class TargetState(str, Enum):
    """Whether a repository is watched, and why not."""

    WATCHED = "watched"
    SUSPENDED = "suspended"  # its owner suspended the App
    REMOVED = "removed"  # uninstalled; its data goes after a stated time
    ARCHIVED = "archived"  # read-only: tested no more, nothing can be said there
    GONE = "gone"  # deleted or hidden on GitHub


class CommandState(str, Enum):
    """What became of a command."""

    PENDING = "pending"
    DONE = "done"
    REFUSED = "refused"  # no permission, not here, no such thing
    FAILED = "failed"


class JobState(str, Enum):
    """What became of a job."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class EffectState(str, Enum):
    """How far an effect on GitHub has come."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    HELD = "held"
    FAILED = "failed"


class SuppressionCause(str, Enum):
    """Why an effect stays here, where that decides what sets it going again (`bot.store.suppression`)."""

    NONE = ""  # its reason is for people, and only a person sets it going
    WITHDRAWN = "withdrawn"  # an issue: what it says is not so any more
    OVER_QUOTA = "over_quota"  # an issue: it waits for the next day
    CHECKING = "checking"  # an issue: it waits for its last check
    UNWATCHED = "unwatched"  # its repository is not watched, or gives no access
    NO_ISSUES = "no_issues"  # its repository has issues switched off
