"""A real model on this machine: its weights, and the server process that runs them."""
