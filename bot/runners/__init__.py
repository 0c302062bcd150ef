"""Runners: where shards are executed."""
