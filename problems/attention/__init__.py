"""Attention: paged decode."""
