"""Bugs between campaigns: their states and issues."""
