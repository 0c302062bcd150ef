"""Execution: a supervisor, its persistent workers, and shards of cases."""
