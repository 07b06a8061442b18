"""Behind the run time's C functions: contexts, their queries, inputs and outputs, and memory of the board."""
