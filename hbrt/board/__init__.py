"""A board's place: its directory, the files in it, and starting its daemon."""
