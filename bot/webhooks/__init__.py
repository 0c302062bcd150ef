"""Webhooks: signature, inbox, and what events mean."""
