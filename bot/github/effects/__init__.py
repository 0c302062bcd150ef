"""Kinds of effects: one file each, registered by a decorator."""

from __future__ import annotations

import importlib
import pkgutil

from bot.github.effects.kind import EffectKind, kind, kind_of, kinds

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["EffectKind", "kind", "kind_of", "kinds"]
