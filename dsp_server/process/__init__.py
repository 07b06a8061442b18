"""What any server of this package needs as a process: an event loop, signals, a journal."""
