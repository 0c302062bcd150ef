"""Runners: where shards are executed."""

from bot.runners.local import LocalRunner, run_tool
from bot.runners.protocol import Runner, ToolchainTrouble, make_runner

__all__ = ["LocalRunner", "Runner", "ToolchainTrouble", "make_runner", "run_tool"]
