"""A repository's configuration, `.github/assay.yml`: its model, its reader, its defaults."""

from bot.config.defaults import default_config
from bot.config.model import LimitsConfig, ReportsConfig, RepositoryConfig, ToolchainConfig
from bot.config.parse import CONFIG_PATH, parse_config
from bot.config.problems import InvalidConfigError, Problem

__all__ = [
    "CONFIG_PATH",
    "InvalidConfigError",
    "LimitsConfig",
    "Problem",
    "ReportsConfig",
    "RepositoryConfig",
    "ToolchainConfig",
    "default_config",
    "parse_config",
]
