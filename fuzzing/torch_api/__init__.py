"""torch's public API: canonical names, serialized calls, and samples of the library's own tests."""
