"""C conventions: pointer arguments, the last error, the program's calling line."""
