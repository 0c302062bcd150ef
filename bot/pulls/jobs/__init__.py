"""Jobs about pull requests."""
