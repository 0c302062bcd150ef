"""The steps of a campaign, one file for each state; `bot.campaigns.registry` finds them."""
