"""Composition: connects the packages, for the service and for the command line."""
