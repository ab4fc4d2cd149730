"""The routes of the daemon, an area each."""
