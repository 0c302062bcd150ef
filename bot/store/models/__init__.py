"""The tables, by subject; import them from here."""

from bot.store.models.base import Base, UtcDateTime
from bot.store.models.bugs import Bug, Job, Retest
from bot.store.models.campaigns import (
    Campaign,
    CampaignCase,
    Finding,
    OutcomeRow,
    Reduction,
    Repeat,
    Toolchain,
)
from bot.store.models.inbox import Command, Delivery
from bot.store.models.outbox import CachedResponse, Effect, KillSwitch, RateLimitPause, RateUsage
from bot.store.models.proposals import Proposal
from bot.store.models.states import (
    BugState,
    CampaignState,
    Classification,
    CommandState,
    DeliveryState,
    EffectState,
    JobState,
    ProposalState,
    Side,
    SuppressionCause,
    TargetState,
)
from bot.store.models.target_names import TargetName, insert_names, name_of, reference_column
from bot.store.models.targets import AuditEvent, Installation, Mute, PeriodicTask, Pull, Target

__all__ = [
    "AuditEvent",
    "Base",
    "Bug",
    "BugState",
    "CachedResponse",
    "Campaign",
    "CampaignCase",
    "CampaignState",
    "Classification",
    "Command",
    "CommandState",
    "Delivery",
    "DeliveryState",
    "Effect",
    "EffectState",
    "Finding",
    "Installation",
    "Job",
    "JobState",
    "KillSwitch",
    "Mute",
    "OutcomeRow",
    "PeriodicTask",
    "Proposal",
    "ProposalState",
    "Pull",
    "RateLimitPause",
    "RateUsage",
    "Reduction",
    "Repeat",
    "Retest",
    "Side",
    "SuppressionCause",
    "Target",
    "TargetName",
    "TargetState",
    "Toolchain",
    "UtcDateTime",
    "insert_names",
    "name_of",
    "reference_column",
]
