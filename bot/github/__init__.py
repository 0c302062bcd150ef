"""The only package that talks to GitHub."""
