"""Bugs: their state between campaigns, and their issues."""
