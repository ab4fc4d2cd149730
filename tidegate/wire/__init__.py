"""Bytes to records and back; pure, and without meaning."""
