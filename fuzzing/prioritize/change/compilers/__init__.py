"""The areas of each compiler, one file each, found by name."""
