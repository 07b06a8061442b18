"""The daemon's part of a board's trace. For the files, see hbrt/trace."""
