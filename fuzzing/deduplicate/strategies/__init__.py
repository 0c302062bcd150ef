"""Ways to tell which failures are one bug; each is a file that registers itself. See `base`."""
