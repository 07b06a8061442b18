"""Requests to a board from a process that is not attached to it, such as a verb."""
