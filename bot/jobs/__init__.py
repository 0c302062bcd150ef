"""The job queue: claim, lease, run, retry. Jobs live in the `jobs` package of their subject."""
