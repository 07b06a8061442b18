"""Parts of every server process: an event loop, signals, a journal."""
