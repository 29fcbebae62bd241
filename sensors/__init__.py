"""What starts a run: discovery, backlog, interrupted runs."""
