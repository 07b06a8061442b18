"""Fault injection: which faults occur on a board, and when. Rules only; the daemon and the cores carry them out."""
