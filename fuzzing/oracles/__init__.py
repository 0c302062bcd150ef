"""Oracles: from evidence to verdict."""
