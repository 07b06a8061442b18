"""The trace of a program, for the parts of it that no session has. See hbrt/trace for the files."""
