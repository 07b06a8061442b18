"""Fault injection: which faults occur on a board, and when. Only rules; the daemon and the cores carry them out."""
