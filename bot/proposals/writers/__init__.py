"""Writers of tests: one file for each suite, with a template in `templates/proposals`."""
