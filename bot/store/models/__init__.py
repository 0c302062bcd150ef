"""The tables, by subject; everybody imports them from here."""

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
from bot.store.models.outbox import Answer, Brake, Effect, Pause, Spending
from bot.store.models.states import (
    BugState,
    CampaignState,
    Cause,
    CommandState,
    DeliveryState,
    EffectState,
    JobState,
    Side,
    Standing,
    TargetState,
)
from bot.store.models.targets import Act, Duty, Installation, Mute, Pull, Target

__all__ = [
    "Act",
    "Answer",
    "Base",
    "Brake",
    "Bug",
    "BugState",
    "Campaign",
    "CampaignCase",
    "CampaignState",
    "Cause",
    "Command",
    "CommandState",
    "Delivery",
    "DeliveryState",
    "Duty",
    "Effect",
    "EffectState",
    "Finding",
    "Installation",
    "Job",
    "JobState",
    "Mute",
    "OutcomeRow",
    "Pause",
    "Pull",
    "Reduction",
    "Repeat",
    "Retest",
    "Side",
    "Spending",
    "Standing",
    "Target",
    "TargetState",
    "Toolchain",
    "UtcDateTime",
]
