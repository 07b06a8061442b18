"""Fault injection: what is to go wrong on a board, and when. Rules only; the daemon and the cores carry them out."""
