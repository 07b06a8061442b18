"""Behind the runtime's C functions: contexts, their queries, inputs and outputs, and board memory."""
