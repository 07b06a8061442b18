"""The trace of a board: the daemon's part, and what a core notes while it is on. See hbrt/trace for the files."""
