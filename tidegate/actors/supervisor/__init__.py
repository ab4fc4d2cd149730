"""The supervisor actor: starts, watches and ends attempts."""
