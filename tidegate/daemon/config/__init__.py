"""What the daemon is told: the keys of its file, where each value came from, and what it means."""
