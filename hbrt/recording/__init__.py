"""Recordings: the calls of a program as files, with the memory that each read and wrote."""
