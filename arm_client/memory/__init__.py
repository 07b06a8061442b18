"""This process's device memory: blocks, flushes, registrations."""
