"""Triage: what makes two findings the same bug."""
