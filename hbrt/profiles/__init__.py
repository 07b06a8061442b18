"""Differences between boards as data: one file of constants per board, each with its source or assumed range."""
