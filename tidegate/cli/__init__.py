"""The command line: one file for each command, and the exit codes in ``main.py``."""
