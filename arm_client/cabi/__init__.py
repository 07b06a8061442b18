"""The conventions of C: pointer arguments, the last error, the calling line of the program."""
