"""Ways to tell where a failure is, one file each; see `fuzzing.localize.localization`."""
