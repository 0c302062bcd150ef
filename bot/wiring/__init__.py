"""Composition: the rooms plugged into one another, for the service and for the command line."""
