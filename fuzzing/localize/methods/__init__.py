"""Ways to locate a failure, one file each; see `fuzzing.localize.localization`."""
