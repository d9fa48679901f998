"""The headers that every answer carries."""
