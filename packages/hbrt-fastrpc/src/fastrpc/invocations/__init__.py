"""The parts of an invocation: its message on the board, resending the same message, and the error of its task."""
