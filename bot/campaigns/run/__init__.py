"""Running cases: toolchains, shards, fresh repeats, cases outside the plan."""
