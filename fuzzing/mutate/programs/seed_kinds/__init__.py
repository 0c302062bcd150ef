"""Kinds of seed programs: each file registers one."""
