"""Ways to tell where a failure is, one file each; see `fuzzing.localise.localisation`."""
