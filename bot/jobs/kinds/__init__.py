"""The kinds of jobs, one small file each; `bot.jobs.registry` finds them."""
