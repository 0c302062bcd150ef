"""Watched repositories: their states, and the events that webhooks missed."""
