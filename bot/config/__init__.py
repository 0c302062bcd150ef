"""A repository's configuration `.github/assay.yml`: model, parser, defaults."""

from bot.config.defaults import default_config, read_repository_config, resolve_config
from bot.config.model import RepositoryConfig
from bot.config.parser import CONFIG_PATH, parse_config
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
    "default_config",
    "parse_config",
    "read_repository_config",
    "resolve_config",
]
