"""Asking a board without attaching to it: what the verbs use."""
