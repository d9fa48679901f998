"""Norms and feed-forward blocks."""
