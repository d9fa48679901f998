"""The problem library: one module a problem, and the catalogue that reads them."""
