"""GitHubSink: the only room that talks to it."""
