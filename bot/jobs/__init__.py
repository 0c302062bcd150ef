"""Jobs: what takes long, or needs the network, done from rows: reducing, bisecting, testing fixes."""
