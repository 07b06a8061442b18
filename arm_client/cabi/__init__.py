"""C's habits: what stands behind an argument, the last error, the line of the program that called."""
