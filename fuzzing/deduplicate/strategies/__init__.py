"""Ways to group failures into bugs; each is a file that registers itself. See `base`."""
