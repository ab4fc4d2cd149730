"""What tidegate costs and how fast it is, next to others on the same stream in the same run."""
