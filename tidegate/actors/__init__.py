"""The actors: provider, sink, supervisor, each a pure machine in a thin shell."""
