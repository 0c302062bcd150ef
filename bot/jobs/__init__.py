"""The job queue: claim, lease, run, retry. The jobs themselves are in `bot.bugs`, `bot.pulls`, `bot.targets`."""
