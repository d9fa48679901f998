"""Every write, one verb a function: each owns its transaction and sends messages on commit."""
