"""The provider actor: one attempt at a turn, in a worker process."""
