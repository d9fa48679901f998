"""Attention over paged, ragged and latent keys."""
