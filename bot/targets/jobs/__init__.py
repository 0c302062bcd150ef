"""Jobs about repositories."""
