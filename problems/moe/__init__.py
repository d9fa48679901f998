"""Mixtures of experts: routing."""
