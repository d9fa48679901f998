"""Bench and judge: attempts, gradings, and the vocabulary that the web side shares. No Django."""
