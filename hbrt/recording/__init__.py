"""Recordings: a program's calls as files, with the memory that each read and wrote."""
