"""Mixtures of experts: routing, the experts themselves, and their backward passes."""
