"""Cache movement: page copies."""
