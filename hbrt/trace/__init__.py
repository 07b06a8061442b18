"""The recorder of a board: what each process notes while a trace is on, and the files that viewers open."""
