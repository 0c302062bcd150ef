"""The summary of a campaign, for whoever renders it."""
