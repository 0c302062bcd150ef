"""Webhooks: signature, inbox, and what events mean."""

from bot.webhooks.intents import CampaignIntent, Intent

__all__ = ["CampaignIntent", "Intent"]
