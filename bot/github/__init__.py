"""GitHub: the only room that talks to it."""
