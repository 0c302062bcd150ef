"""Bugs: the life they lead between campaigns, and what their issues are told of it."""
