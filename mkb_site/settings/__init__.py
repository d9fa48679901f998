"""Settings: base, then what differs by place."""
