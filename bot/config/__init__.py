"""A repository's configuration, `.github/assay.yml`: its model, its reader, its defaults."""

from bot.config.defaults import config_of, default_config, own_config
from bot.config.model import RepositoryConfig
from bot.config.parse import CONFIG_PATH, parse_config
from bot.config.problems import InvalidConfigError, Problem
from bot.config.sections import (
    LimitsConfig,
    PullRequestsConfig,
    ReductionConfig,
    ReportsConfig,
    ScheduleConfig,
    ToolchainConfig,
)

__all__ = [
    "CONFIG_PATH",
    "InvalidConfigError",
    "LimitsConfig",
    "Problem",
    "PullRequestsConfig",
    "ReductionConfig",
    "ReportsConfig",
    "RepositoryConfig",
    "ScheduleConfig",
    "ToolchainConfig",
    "config_of",
    "default_config",
    "own_config",
    "parse_config",
]
