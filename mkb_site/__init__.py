"""The site: settings, addresses, and the doors of its processes."""
