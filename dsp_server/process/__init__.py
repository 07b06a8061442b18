"""Parts that every server process has: an event loop, signals, a journal."""
