"""The sink actor: the one writer of answers."""
