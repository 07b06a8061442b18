"""Where a board lives: its directory, the files in it, starting its daemon."""
