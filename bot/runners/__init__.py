"""Runners: where shards are executed."""

from bot.runners.local import LocalRunner, run_tool
from bot.runners.protocol import Runner, ToolchainError, make_runner

__all__ = ["LocalRunner", "Runner", "ToolchainError", "make_runner", "run_tool"]
