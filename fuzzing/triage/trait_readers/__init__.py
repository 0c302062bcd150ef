"""How the traits of each kind of program are read; see `fuzzing.triage.traits`."""
