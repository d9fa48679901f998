"""Block-scaled matrix products, and their codec."""
