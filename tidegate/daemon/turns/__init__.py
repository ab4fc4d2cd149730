"""The turns that the daemon keeps: who may start, who waits, and what ends them."""
