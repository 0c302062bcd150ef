"""Runners: where shards execute."""

from bot.runners.local import LocalRunner, run_tool
from bot.runners.protocol import Runner, make_runner

__all__ = ["LocalRunner", "Runner", "make_runner", "run_tool"]
