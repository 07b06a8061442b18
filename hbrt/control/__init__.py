"""Requests to a board from a process that is not attached, such as a verb."""
