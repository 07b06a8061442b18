"""A board's tracing: what each process records while a trace is on, and the files for viewers."""
