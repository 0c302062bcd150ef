"""Campaigns: the state machine that turns a commit into findings."""
