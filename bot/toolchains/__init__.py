"""Toolchains: provisioners and their cache."""
