"""Timing of a model's steps, and the files written from it."""
