"""Makes failing cases small: one engine, and a format for each kind of thing that fails."""
