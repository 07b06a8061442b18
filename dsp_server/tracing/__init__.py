"""The trace of a board: the daemon's part. See hbrt/trace for the files."""
