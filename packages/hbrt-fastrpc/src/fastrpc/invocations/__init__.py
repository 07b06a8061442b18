"""What an invocation is made of: its message on the board, the same one sent again, and the error of its task."""
