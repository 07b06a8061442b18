"""Strict mode (HBRT_CACHE=strict): the rules, the watch that applies them, and what it reports."""
