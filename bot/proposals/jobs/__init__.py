"""Job kinds of proposals: one file each, registered by `@job_kind`."""
