"""Device memory as this process holds it: blocks, flushes, registrations."""
