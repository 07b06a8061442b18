"""Strict mode (HBRT_CACHE=strict): the rules, the checker that applies them, and its reports."""
